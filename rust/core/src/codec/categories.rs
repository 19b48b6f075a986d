//! Dictionaries: labels of any kind as the codes `0, 1, …`.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

use crate::error::{Result, argument, element, reason};

/// A dictionary of labels: label `i` has code `i`.
///
/// The dictionary is public: every client has the same one, whatever its own label is.
#[derive(Clone, PartialEq, Eq)]
pub struct Categories<T: Eq + Hash> {
    labels: Vec<T>,
    codes: HashMap<T, u32>,
}

impl<T: Eq + Hash + Clone> Categories<T> {
    /// The dictionary of `labels`, in this order.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) if there are fewer than 2 labels or more than `2^32 - 1`, [`Error::Value`](crate::Error::Value) at the first label
    /// that was there before.
    pub fn new(labels: Vec<T>) -> Result<Categories<T>> {
        if labels.len() < 2 || u32::try_from(labels.len()).is_err() {
            let reason = reason!("{} are not allowed; 2 to 2^32 - 1 are", labels.len());
            return Err(argument("labels", reason));
        }
        let mut codes = HashMap::with_capacity(labels.len());
        for (index, label) in labels.iter().enumerate() {
            if codes.insert(label.clone(), index as u32).is_some() {
                return Err(element("labels", index, "each label may appear once"));
            }
        }
        Ok(Categories { labels, codes })
    }

    /// The labels, in the order of their codes.
    pub fn labels(&self) -> &[T] {
        &self.labels
    }

    /// How many labels there are, at least 2.
    #[allow(clippy::len_without_is_empty, reason = "a dictionary is never empty")]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// The codes of `labels`.
    ///
    /// # Errors
    /// [`Error::Value`](crate::Error::Value) at the first label that is not in the dictionary.
    pub fn encode(&self, labels: &[T]) -> Result<Vec<u32>> {
        let code = |(index, label)| match self.codes.get(label) {
            Some(&code) => Ok(code),
            None => Err(element("x", index, "a label must be in the dictionary")),
        };
        labels.iter().enumerate().map(code).collect()
    }

    /// The labels of `codes`.
    ///
    /// # Errors
    /// [`Error::Value`](crate::Error::Value) at the first number that is no code.
    pub fn decode(&self, codes: &[u32]) -> Result<Vec<&T>> {
        let label = |(index, &code): (usize, &u32)| match self.labels.get(code as usize) {
            Some(label) => Ok(label),
            None => Err(element("reports", index, "a code must be below the number of labels")),
        };
        codes.iter().enumerate().map(label).collect()
    }
}

impl<T: Eq + Hash + fmt::Debug> fmt::Debug for Categories<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Categories").field(&self.labels).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn labels_and_codes_go_both_ways() {
        let categories = Categories::new(vec!["red", "green", "blue"]).unwrap();
        assert_eq!(categories.len(), 3);
        assert_eq!(categories.encode(&["blue", "red", "blue"]).unwrap(), [2, 0, 2]);
        assert_eq!(categories.decode(&[2, 0, 2]).unwrap(), [&"blue", &"red", &"blue"]);
        assert!(categories.encode(&[]).unwrap().is_empty());
        assert_eq!(format!("{categories:?}"), r#"Categories(["red", "green", "blue"])"#);
    }

    #[test]
    fn what_is_not_in_the_dictionary_is_refused_by_its_place() {
        let categories = Categories::new(vec![10, 20]).unwrap();
        let refused = categories.encode(&[10, 20, 30, 40]).unwrap_err();
        assert!(matches!(refused, Error::Value { name: "x", index: 2, .. }));
        assert!(!refused.to_string().contains("30"));
        assert!(matches!(categories.decode(&[0, 2]), Err(Error::Value { index: 1, .. })));
    }

    #[test]
    fn a_dictionary_has_two_different_labels() {
        assert!(matches!(Categories::<u8>::new(vec![]), Err(Error::Argument { name: "labels", .. })));
        assert!(matches!(Categories::new(vec![1]), Err(Error::Argument { .. })));
        assert!(matches!(Categories::new(vec![1, 2, 1]), Err(Error::Value { index: 2, .. })));
    }
}
