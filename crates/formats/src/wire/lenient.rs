//! Field types that take what they can use and never cost their neighbours.
//!
//! Agents add, drop and retype fields between minor releases. A struct made by `object!` takes every
//! object: a field of the wrong type is empty, a repeated key counts once (the last), and what no
//! field is named for is kept in `extra`. It borrows everything and parses in one pass.

use std::borrow::Cow;
use std::fmt;

use model::{Raw, Text};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::scanner::{self, Scanner};

/// A short string: a type, a name, an id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Str<'a>(pub(crate) Option<Cow<'a, str>>);

impl<'a> Str<'a> {
    pub(crate) fn as_deref(&self) -> Option<&str> {
        self.0.as_deref()
    }

    pub(crate) fn take(&mut self) -> Option<Cow<'a, str>> {
        self.0.take()
    }

    pub(crate) fn owned(&self) -> Option<String> {
        self.as_deref().map(str::to_owned)
    }
}

/// `true`, `false` or nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flag(pub(crate) Option<bool>);

impl Flag {
    pub(crate) fn is_true(self) -> bool {
        self.0 == Some(true)
    }
}

/// A number, or nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Num(pub(crate) Option<f64>);

impl Num {
    pub(crate) fn as_u64(self) -> Option<u64> {
        self.0.filter(|it| *it >= 0.0).map(|it| it as u64)
    }

    /// The number of something that is not counted when there is none.
    pub(crate) fn count(self) -> u64 {
        self.as_u64().unwrap_or_default()
    }
}

/// Any value, as its JSON text; `null` is nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Any<'a>(pub(crate) Option<&'a RawValue>);

impl<'a> Any<'a> {
    pub(crate) fn raw(self) -> Option<Raw<'a>> {
        self.0.map(Raw::borrowed)
    }

    /// A string by its value, anything else by its JSON.
    pub(crate) fn text(self) -> Option<Text<'a>> {
        self.0.map(Text::from_json)
    }

    /// The same, with something in it.
    pub(crate) fn filled_text(self) -> Option<Text<'a>> {
        self.text().filter(|it| !it.is_empty())
    }

    /// The value of a string.
    pub(crate) fn str(self) -> Option<Cow<'a, str>> {
        let json = self.0?.get();
        let inside = json.strip_prefix('"')?.strip_suffix('"')?;
        // No early end: a loop without one is done many bytes at a time.
        if inside
            .bytes()
            .fold(false, |found, it| found | (it == b'\\'))
        {
            return serde_json::from_str(json).ok().map(Cow::Owned);
        }
        Some(Cow::Borrowed(inside))
    }

    pub(crate) fn is_str(self) -> bool {
        self.0.is_some_and(|it| it.get().starts_with('"'))
    }

    pub(crate) fn is_true(self) -> bool {
        self.0.is_some_and(|it| it.get() == "true")
    }

    pub(crate) fn as_u64(self) -> Option<u64> {
        number_of(self.0?.get()).as_u64()
    }

    /// Parses the value, as far as it is what `T` wants.
    pub(crate) fn parse<T: Deserialize<'a>>(self) -> Option<T> {
        scanner::from_str(self.0?.get()).ok()
    }
}

/// What every struct made by `object!` has besides its fields.
pub(crate) trait Object<'a> {
    /// The fields that no rule reads.
    fn extra(&mut self) -> &mut Extra<'a>;
    /// False when the value was missing or no object.
    fn is_object(&self) -> bool;
    /// Reads where the value stands: a line is small, and the struct for it is not.
    fn read<D: Deserializer<'a>>(&mut self, deserializer: D) -> Result<(), D::Error>;
}

/// Reads a whole text into an object.
pub(crate) fn read<'a, T: Object<'a> + Default>(
    text: &'a str,
    object: &mut T,
) -> Result<(), serde_json::Error> {
    let mut scanner = Scanner::new(text);
    if object.read(&mut scanner).is_ok() && scanner.end().is_ok() {
        return Ok(());
    }
    // Some fields may have been filled before.
    *object = T::default();
    Err(scanner::error_in(text))
}

pub(crate) type Extra<'a> = Vec<(Cow<'a, str>, Raw<'a>)>;

/// Keeps an unconsumed field, unless it is `null`.
pub(crate) fn keep<'a>(extra: &mut Extra<'a>, key: Cow<'a, str>, value: &'a RawValue) {
    if value.get() != "null" {
        extra.push((key, Raw::borrowed(value)));
    }
}

/// Answers of a visitor to the types it does not want: they count as nothing.
macro_rules! ignore {
    ($($kind:ident)*) => { $(ignore!(@ $kind);)* };
    (@ unit) => {
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
    (@ bool) => {
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
    (@ number) => {
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
    (@ str) => {
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
    (@ seq) => {
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            while seq.next_element::<serde::de::IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
    (@ map) => {
        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<serde::de::IgnoredAny, serde::de::IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
}

/// Structs for foreign objects; every field type has a `Default` that means "absent".
///
/// Fields in brackets are [`Any`]: they share one way in, and cost nothing until they are looked at.
/// Structs of lines that come by the thousand have most of theirs there.
macro_rules! object {
    ($($(#[$meta:meta])* $name:ident {
        $([$($any:ident = $any_key:literal,)*])?
        $($(#[$field_meta:meta])* $field:ident: $type:ty = $key:literal,)*
    })*) => { $(
        $(#[$meta])*
        #[derive(Debug, Default)]
        pub(crate) struct $name<'a> {
            $($(pub(crate) $any: $crate::wire::lenient::Any<'a>,)*)?
            $($(#[$field_meta])* pub(crate) $field: $type,)*
            pub(crate) extra: $crate::wire::lenient::Extra<'a>,
            is_object: bool,
        }

        impl<'a> $crate::wire::lenient::Object<'a> for $name<'a> {
            fn extra(&mut self) -> &mut $crate::wire::lenient::Extra<'a> {
                &mut self.extra
            }

            fn is_object(&self) -> bool {
                self.is_object
            }

            fn read<D: serde::Deserializer<'a>>(&mut self, deserializer: D) -> Result<(), D::Error> {
                struct ObjectVisitor<'v, 'a>(&'v mut $name<'a>);

                impl<'de> serde::de::Visitor<'de> for ObjectVisitor<'_, 'de> {
                    type Value = ();

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    ignore!(unit bool number str seq);

                    #[allow(unreachable_code, unused_variables, reason = "an object may have nothing in brackets")]
                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
                        let object = self.0;
                        object.is_object = true;
                        while let Some($crate::wire::lenient::Key(key)) = map.next_key()? {
                            let any: &mut $crate::wire::lenient::Any<'de> = match &*key {
                                $($($any_key => &mut object.$any,)*)?
                                $($key => {
                                    object.$field = map.next_value()?;
                                    continue;
                                })*
                                _ => {
                                    $crate::wire::lenient::keep(&mut object.extra, key, map.next_value()?);
                                    continue;
                                }
                            };
                            *any = map.next_value()?;
                        }
                        Ok(())
                    }
                }

                deserializer.deserialize_any(ObjectVisitor(self))
            }
        }

        impl<'de: 'a, 'a> serde::Deserialize<'de> for $name<'a> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let mut object = $name::<'de>::default();
                $crate::wire::lenient::Object::read(&mut object, deserializer)?;
                Ok(object)
            }
        }
    )* };
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    // One copy for all fields: the less code a line runs through, the cheaper it is.
    #[inline(never)]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StrVisitor;
        impl<'de> Visitor<'de> for StrVisitor {
            type Value = Str<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Str(Some(Cow::Borrowed(text))))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Str(Some(Cow::Owned(text.to_owned()))))
            }
            ignore!(unit bool number seq map);
        }
        deserializer.deserialize_any(StrVisitor)
    }
}

/// The key of an object, which may be any string.
pub(crate) struct Key<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

impl<'de> Deserialize<'de> for Flag {
    // One copy for all fields: the less code a line runs through, the cheaper it is.
    #[inline(never)]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?;
        Ok(Flag(match raw.get() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }))
    }
}

impl<'de> Deserialize<'de> for Num {
    // One copy for all fields: the less code a line runs through, the cheaper it is.
    #[inline(never)]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'de RawValue>::deserialize(deserializer).map(|raw| number_of(raw.get()))
    }
}

#[inline(never)]
fn number_of(json: &str) -> Num {
    match json.as_bytes() {
        [digit @ b'0'..=b'9'] => Num(Some(f64::from(digit - b'0'))),
        [b'-' | b'0'..=b'9', ..] => Num(json.parse().ok()),
        _ => Num(None),
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Any<'a> {
    // One copy for all fields: the less code a line runs through, the cheaper it is.
    #[inline(never)]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?;
        Ok(Any((raw.get() != "null").then_some(raw)))
    }
}

/// An object that few lines have: absent, it costs a line nothing.
#[derive(Clone, Debug)]
pub(crate) struct Boxed<T>(Option<Box<T>>);

impl<T> Default for Boxed<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Default> Boxed<T> {
    pub(crate) fn is_object(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.0.as_deref()
    }

    pub(crate) fn take(&mut self) -> T {
        self.0.take().map(|it| *it).unwrap_or_default()
    }
}

impl<'de, T: Default + Object<'de>> Deserialize<'de> for Boxed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = Box::<T>::default();
        object.read(deserializer)?;
        Ok(Self(object.is_object().then_some(object)))
    }
}

/// A list; an element of the wrong type is empty, anything but a list is an empty list.
#[derive(Clone, Debug)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
            type Value = List<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::new();
                while let Some(element) = seq.next_element()? {
                    list.push(element);
                }
                Ok(List(list))
            }
            ignore!(unit bool number str map);
        }
        deserializer.deserialize_any(ListVisitor(std::marker::PhantomData))
    }
}

/// An object whose keys are data.
// A list and no map: `FirstId` depends on the order and on repeated keys.
#[derive(Clone, Debug)]
pub(crate) struct Map<'a, T>(pub(crate) Vec<(Cow<'a, str>, T)>);

impl<T> Default for Map<'_, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for Map<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MapVisitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for MapVisitor<T> {
            type Value = Map<'de, T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some((Key(key), value)) = map.next_entry()? {
                    entries.push((key, value));
                }
                Ok(Map(entries))
            }
            ignore!(unit bool number str seq);
        }
        deserializer.deserialize_any(MapVisitor(std::marker::PhantomData))
    }
}

/// Words, or a list of blocks.
#[derive(Debug, Default)]
pub(crate) enum Words<'a, T> {
    #[default]
    None,
    Text(Cow<'a, str>),
    Blocks(Vec<T>),
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for Words<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordsVisitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for WordsVisitor<T> {
            type Value = Words<'de, T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of blocks")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Words::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Words::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                // Claude Code prints one line for each block.
                let mut blocks = Vec::with_capacity(1);
                while let Some(block) = seq.next_element()? {
                    blocks.push(block);
                }
                Ok(Words::Blocks(blocks))
            }
            ignore!(unit bool number map);
        }
        deserializer.deserialize_any(WordsVisitor(std::marker::PhantomData))
    }
}
