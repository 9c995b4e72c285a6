//! Names of writes. A caller that lost the answer to a write sends it again under the same name, and the
//! journal answers as it did the first time.

use uuid::Uuid;

/// Made before the first try of a write, and kept through all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WriteId(Uuid);

impl WriteId {
    /// One that no other write has.
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    /// One that a client has chosen.
    pub fn from_uuid(id: Uuid) -> Self {
        Self(id)
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn uuid(self) -> Uuid {
        self.0
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    pub(crate) fn from_slice(bytes: &[u8]) -> Option<Self> {
        Uuid::from_slice(bytes).ok().map(Self)
    }
}

impl Default for WriteId {
    fn default() -> Self {
        Self::new()
    }
}
