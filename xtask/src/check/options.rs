//! The arguments of `cargo xtask test`.

use anyhow::{Context, Result, bail};

/// What to run, how often and under which conditions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// How many runs; `None` for one that prints no table.
    pub(super) repeat: Option<u32>,
    pub(super) load: Load,
    pub(super) extent: Extent,
    /// Tests by any part of their name; none stands for the whole of CI.
    pub(super) filters: Vec<String>,
}

/// What else the machine does during the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Load {
    #[default]
    Quiet,
    /// Every core has a busy thread.
    Busy,
}

/// How many cases property tests and crash tests try.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Extent {
    #[default]
    Usual,
    Long,
}

impl Options {
    /// Reads the arguments after `test`.
    pub(crate) fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--repeat" => {
                    let count = args.next().context("`--repeat` needs a number")?;
                    let count = count.parse().ok().filter(|count| *count > 0);
                    options.repeat = Some(count.context("`--repeat` needs a number above zero")?);
                }
                "--load" => options.load = Load::Busy,
                "--long" => options.extent = Extent::Long,
                flag if flag.starts_with('-') => bail!("unknown option `{flag}`"),
                filter => options.filters.push(filter.to_owned()),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_and_filters_may_come_in_any_order() {
        let wanted = Options {
            repeat: Some(50),
            load: Load::Busy,
            extent: Extent::Usual,
            filters: vec!["jobs::".to_owned(), "kill".to_owned()],
        };
        assert_eq!(parse("--repeat 50 --load jobs:: kill").expect("it is valid"), wanted);
        assert_eq!(parse("jobs:: --load kill --repeat 50").expect("it is valid"), wanted);
        assert_eq!(parse("").expect("it is valid"), Options::default());
        assert_eq!(parse("--long").expect("it is valid").extent, Extent::Long);
    }

    #[test]
    fn a_wrong_number_and_an_unknown_option_are_refused() {
        for line in ["--repeat", "--repeat many", "--repeat 0", "--fast"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
