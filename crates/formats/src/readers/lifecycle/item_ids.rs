//! Which ids were given out, so that none is used twice.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use model::ItemId;

/// Ids remembered; a session with more items than this forgets the oldest.
const MAX_USED: usize = 65_536;

/// Ids that were seen, by hash: enough to keep them apart, small enough to keep many.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeenIds {
    hashes: HashSet<u64>,
    order: VecDeque<u64>,
}

impl SeenIds {
    /// Remembers an id; true when it is new.
    pub(crate) fn insert(&mut self, id: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let hash = hasher.finish();
        if !self.hashes.insert(hash) {
            return false;
        }
        self.order.push_back(hash);
        if self.order.len() > MAX_USED
            && let Some(oldest) = self.order.pop_front()
        {
            self.hashes.remove(&oldest);
        }
        true
    }
}

/// Ids of items that were given out.
#[derive(Clone, Debug, Default)]
pub struct ItemIds {
    seen: SeenIds,
    n_repeated: u64,
    /// What ids mean that were given out before and had to be changed.
    renamed: HashMap<ItemId<'static>, ItemId<'static>>,
}

impl ItemIds {
    /// An item of this id exists.
    pub fn reserve(&mut self, id: &ItemId<'_>) {
        self.seen.insert(id.as_str());
    }

    /// `id`, or `id` with a number behind it. Numbers are never tried twice: an agent that repeats
    /// one id for ever must not make each try longer than the last.
    pub(super) fn unique(&mut self, id: &ItemId<'static>) -> ItemId<'static> {
        let mut candidate = id.clone();
        while !self.seen.insert(candidate.as_str()) {
            self.n_repeated += 1;
            candidate = ItemId::new(format!("{id}~{}", self.n_repeated + 1));
        }
        // Clearing all is crude, but bounds the memory; only an agent that repeats ids for ever
        // gets here.
        if self.renamed.len() > MAX_USED {
            self.renamed.clear();
        }
        if candidate == *id {
            // The id is free again (it was forgotten as too old): an earlier renaming no longer
            // holds.
            self.renamed.remove(id);
        } else {
            self.renamed.insert(id.clone(), candidate.clone());
        }
        candidate
    }

    /// The id under which the last item of this id was emitted.
    pub(super) fn renamed(&self, id: &ItemId<'_>) -> Option<ItemId<'static>> {
        // Nearly always: no copy of the id is made for the lookup then.
        if self.renamed.is_empty() {
            return None;
        }
        self.renamed.get(&id.clone().into_owned()).cloned()
    }

    /// The same for all of a path.
    pub(super) fn renamed_path<'a>(
        &self,
        path: &'a [ItemId<'static>],
    ) -> Cow<'a, [ItemId<'static>]> {
        if self.renamed.is_empty() || path.is_empty() {
            return Cow::Borrowed(path);
        }
        let renamed = |id: &ItemId<'static>| self.renamed(id).unwrap_or_else(|| id.clone());
        Cow::Owned(path.iter().map(renamed).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_ids_are_forgotten() {
        let mut ids = ItemIds::default();
        let id = |n: usize| ItemId::new(format!("id{n}"));
        for n in 0..=MAX_USED {
            assert_eq!(ids.unique(&id(n)), id(n));
        }
        assert_eq!(
            (ids.seen.hashes.len(), ids.seen.order.len()),
            (MAX_USED, MAX_USED)
        );
        assert_eq!(
            ids.unique(&id(MAX_USED)),
            ItemId::new(format!("id{MAX_USED}~2"))
        );
        assert_eq!(ids.unique(&id(0)), id(0));
    }

    #[test]
    fn a_renamed_id_means_the_last_item_of_its_name() {
        let mut ids = ItemIds::default();
        let (a, b) = (ItemId::new("a"), ItemId::new("b"));
        assert_eq!(ids.renamed(&a), None);
        ids.unique(&a);
        let path = [a.clone(), b.clone()];
        assert!(matches!(ids.renamed_path(&path), Cow::Borrowed(_)));
        ids.unique(&a);
        ids.unique(&b);
        let again = ids.unique(&a);
        assert_eq!(again, ItemId::new("a~3"));
        assert_eq!(
            (ids.renamed(&a), ids.renamed(&b)),
            (Some(again.clone()), None)
        );
        assert_eq!(*ids.renamed_path(&path), [again, b]);
    }

    #[test]
    fn as_many_renamed_ids_as_may_be_are_kept() {
        let mut ids = ItemIds::default();
        let id = |n: usize| ItemId::new(format!("id{n}"));
        for n in 0..=MAX_USED {
            ids.unique(&id(n));
            ids.unique(&id(n));
        }
        assert_eq!(ids.renamed.len(), MAX_USED + 1);
        ids.unique(&id(MAX_USED));
        assert_eq!(ids.renamed.len(), 1, "past the bound all are forgotten");
    }

    #[test]
    fn renamed_ids_are_bounded() {
        let mut ids = ItemIds::default();
        let id = |n: usize| ItemId::new(format!("id{n}"));
        // Twice as many as are remembered, each given out twice.
        for n in 0..2 * MAX_USED {
            ids.unique(&id(n));
            ids.unique(&id(n));
        }
        assert!(ids.renamed.len() <= MAX_USED + 1);
        assert!(ids.seen.hashes.len() <= MAX_USED);
    }
}
