//! Enums with a name for each variant, as in tables and options.

/// Declare an enum whose variants are written `Variant = "name"`. `ALL` has them in this order, and
/// `name` returns the name, `by_name` the variant that has it.
macro_rules! named_enum {
    ($(#[$meta:meta])* $vis:vis enum $type:ident {
        $($(#[$variant_meta:meta])* $variant:ident = $name:literal,)+
    }) => {
        $(#[$meta])*
        $vis enum $type {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $type {
            pub const ALL: [Self; [$(Self::$variant),+].len()] = [$(Self::$variant),+];

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            // Not all are chosen by name.
            #[allow(dead_code)]
            pub fn by_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|known| known.name() == name)
            }
        }
    };
}
