//! Sentences and phrases that always read the same, each beside its translation.

/// An enum of which every variant is worded in every language, so that none can be forgotten.
macro_rules! bilingual {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$each:meta])* $variant:ident { $english:literal, $japanese:literal })+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$each])* $variant,)+ }

        impl $name {
            /// Every one.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// How it reads in a language.
            #[must_use]
            pub const fn in_language(self, language: $crate::Language) -> &'static str {
                match language {
                    $crate::Language::English => match self { $(Self::$variant => $english,)+ },
                    $crate::Language::Japanese => match self { $(Self::$variant => $japanese,)+ },
                }
            }
        }
    };
}

pub(crate) use bilingual;
