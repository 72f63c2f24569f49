//! What a run of the generator produced.

use std::fmt;

use crate::naive::Decisions;

macro_rules! kinds {
    ($($kind:ident: $text:literal,)*) => {
        /// A kind of thing that a run has to have met at least once.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Happened { $(#[doc = $text] $kind,)* }

        impl Happened {
            const ALL: &[Self] = &[$(Self::$kind,)*];

            fn text(self) -> &'static str {
                match self { $(Self::$kind => $text,)* }
            }
        }
    };
}

kinds! {
    TextFile: "a text file",
    EmptyFile: "an empty file",
    BinaryFile: "a binary file",
    LargeFile: "a file of more than a megabyte",
    OverLimit: "a file over the size limit",
    EmptyDirectory: "an empty directory",
    DeepPath: "a path of twenty levels",
    LinkToFile: "a link to a file",
    LinkToDirectory: "a link to a directory",
    LinkDangling: "a dangling link",
    LinkAbsolute: "an absolute link",
    LinkToItself: "a link to itself",
    LinkOutside: "a link out of the workspace",
    Fifo: "a fifo",
    Socket: "a socket",
    ModePrivate: "a file of mode 0600",
    ModeExecutable: "a file of mode 0755",
    ModeSetuid: "a file of mode 04755",
    ModeReadOnly: "a file of mode 0444",
    ModeGroup: "a file of mode 0664",
    DirectoryPrivate: "a directory of mode 0700",
    DirectorySticky: "a directory of mode 01777",
    NameNewline: "a name with a newline",
    NameDash: "a name with a leading dash",
    NameSpace: "a name with spaces",
    NameQuotes: "a name with quotes",
    NameNotUtf8: "a name that is not UTF-8",
    NameLong: "a name of 200 bytes",
    NameEnv: "a file called .env",
    NameLocal: "a file called x.local",
    NameComposed: "a composed é",
    NameDecomposed: "a decomposed é",
    FileToDirectory: "a directory in a file's place",
    DirectoryToFile: "a file in a directory's place",
    FileToLink: "a link in a file's place",
    LinkToRegular: "a file in a link's place",
    DirectoryToLink: "a link in a directory's place",
    NestedMade: "a nested repository made",
    NestedRemoved: "a nested repository's .git removed",
    NestedRenamed: "a nested repository's .git renamed",
    RootRepository: "the root made a repository",
    GitFile: "a .git file",
    OtherVersionControl: "a version-control directory other than git's",
    RulesWritten: "a rule file written",
    RulesChanged: "a rule file changed",
    RulesSameSize: "a rule file rewritten at the same size and time",
    RulesRemoved: "a rule file removed",
    RulesBelow: "a rule file below the root",
    RulesOurs: "a .retakeignore",
    RulesDirectory: "a rule file that is a directory",
    RulesLink: "a rule file that is a link",
    RulesFifo: "a rule file that is a fifo",
    RulesExclude: "an info/exclude",
    RulesGlobal: "global excludes",
    Tracked: "a path that git came to track",
    Untracked: "a path that git tracks no more",
    RenamedWithin: "a file renamed within its directory",
    RenamedAcross: "a file moved to another directory",
    RenamedOver: "a file renamed onto another",
    DirectoryRenamed: "a directory renamed within its parent",
    DirectoryMoved: "a directory moved to another",
    DirectoryOntoRemoved: "a directory renamed to the place of a removed one",
    Exchanged: "two paths exchanged",
    WrittenInPlace: "a file truncated and written in place",
    WrittenByRename: "a file replaced by rename",
    Appended: "a file appended to",
    SameSize: "a same-size rewrite",
    SameSizeSameTime: "a same-size rewrite with the mtime put back",
    ModeOnly: "a file's mode changed alone",
    DirectoryMode: "a directory's mode changed",
    Touched: "a file's mtime changed alone",
    DirectoryTouched: "a directory's mtime put back after a change in it",
    HardLinked: "a hard link made",
    HardLinkedOutside: "a hard link made outside the workspace",
    WrittenThroughLink: "a file written through its other name",
    WrittenOutside: "a file written through a name outside the workspace",
    Removed: "a file removed",
    TreeRemoved: "a directory removed with what it held",
    Ignored: "a path left out by a rule",
    Kept: "a path that a negated rule took back in",
    Included: "an ignored file captured by the include list",
    Boundary: "rules that start afresh in a nested repository",
    KeptByTracking: "an ignored path captured because git tracks it",
    RuleFileKept: "an ignore file captured although a rule ignores it",
    PassedOver: "a version-control directory passed over",
}

/// How often each kind of thing happened.
#[derive(Debug, Clone)]
pub struct Counts([u64; Happened::ALL.len()]);

impl Default for Counts {
    fn default() -> Self {
        Self([0; Happened::ALL.len()])
    }
}

impl Counts {
    /// Counts one thing that happened.
    pub fn add(&mut self, kind: Happened) {
        self.0[kind as usize] += 1;
    }

    /// Counts what a naive read found to be decided by rules.
    pub fn add_decisions(&mut self, decisions: &Decisions) {
        let all = [
            (Happened::Ignored, decisions.ignored),
            (Happened::Kept, decisions.kept),
            (Happened::Included, decisions.included),
            (Happened::Boundary, decisions.boundaries),
            (Happened::KeptByTracking, decisions.tracked),
            (Happened::RuleFileKept, decisions.rule_files),
            (Happened::PassedOver, decisions.version_control),
        ];
        for (kind, count) in all {
            self.0[kind as usize] += count;
        }
    }

    /// Takes in what another thread counted.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// What should have happened on this platform and never did.
    pub fn missing(&self) -> Vec<&'static str> {
        // APFS refuses names that are not UTF-8 and cannot hold both spellings of é; fifos need `mknod`.
        let impossible: &[Happened] = if cfg!(target_os = "macos") {
            &[Happened::NameNotUtf8, Happened::NameDecomposed, Happened::Fifo, Happened::RulesFifo, Happened::Exchanged]
        } else {
            &[]
        };
        let never = |kind: &&Happened| self.0[**kind as usize] == 0 && !impossible.contains(kind);
        Happened::ALL.iter().filter(never).map(|kind| kind.text()).collect()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Happened::ALL.iter().try_for_each(|kind| writeln!(f, "{:>9}  {}", self.0[*kind as usize], kind.text()))
    }
}
