//! Counts as text, for the notes on flows and sources.

/// A count with its noun. In `what`, `[s]` is for the plural only, and `[was|were]` has a singular
/// and a plural form.
pub fn counted(count: impl Into<u64>, what: &str) -> String {
    let count = count.into();
    let mut words = format!("{count} ");
    let mut rest = what;
    while let Some((before, marked)) = rest.split_once('[') {
        let (forms, after) = marked.split_once(']').unwrap_or((marked, ""));
        let (one, many) = forms.split_once('|').unwrap_or(("", forms));
        words.push_str(before);
        words.push_str(if count == 1 { one } else { many });
        rest = after;
    }
    words + rest
}

/// The same for each nonzero count.
pub fn all_counted<'a, N: Into<u64>>(
    counts: impl IntoIterator<Item = (N, &'a str)>,
) -> impl Iterator<Item = String> {
    let counts = counts.into_iter().map(|(count, what)| (count.into(), what));
    counts.filter(|(count, _)| *count > 0).map(|(count, what)| counted(count, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_one_is_singular() {
        let what =
            "acknowledgement[s] [was|were] held for longer than [its packet was|their packets were] away";
        assert_eq!(counted(1_u32, what), "1 acknowledgement was held for longer than its packet was away");
        assert_eq!(
            counted(2_u32, what),
            "2 acknowledgements were held for longer than their packets were away"
        );
        assert_eq!(counted(1_u32, "of [unfinished"), "1 of ");
    }

    #[test]
    fn test_what_did_not_happen_is_left_out() {
        let counts: Vec<_> = all_counted([(0_u64, "loss[es]"), (1, "report[s]"), (7, "loss[es]")]).collect();
        assert_eq!(counts, ["1 report", "7 losses"]);
    }
}
