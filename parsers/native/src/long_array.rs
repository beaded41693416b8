//! Arrays of more elements than serde has an implementation for, as lists.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub fn serialize<S: Serializer, T: Serialize, const N: usize>(
    array: &Option<Box<[T; N]>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    array.as_deref().map(|array| array.as_slice()).serialize(serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>, const N: usize>(
    deserializer: D,
) -> Result<Option<Box<[T; N]>>, D::Error> {
    let list = Option::<Vec<T>>::deserialize(deserializer)?;
    let array = |list: Vec<T>| {
        list.try_into().map_err(|list: Vec<T>| D::Error::invalid_length(list.len(), &"as many as there are"))
    };
    list.map(array).transpose()
}
