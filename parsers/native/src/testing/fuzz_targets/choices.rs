//! Bytes of a fuzzer as a sequence of choices; zeros follow the last one.

pub struct Choices<'a> {
    rest: &'a [u8],
}

impl<'a> Choices<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes that are left.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut taken = [0; N];
        let (head, rest) = self.rest.split_at(N.min(self.rest.len()));
        taken[..head.len()].copy_from_slice(head);
        self.rest = rest;
        taken
    }

    pub fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.bytes())
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.bytes())
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }

    pub fn flag(&mut self) -> bool {
        self.u8() & 1 == 1
    }

    /// One of `options`, which are not empty.
    pub fn one_of<T: Copy>(&mut self, options: &[T]) -> T {
        options[usize::from(self.u8()) % options.len()]
    }

    /// At most as many bytes as the next two bytes say.
    pub fn piece(&mut self) -> &'a [u8] {
        let length = usize::from(self.u16());
        let (piece, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        piece
    }
}
