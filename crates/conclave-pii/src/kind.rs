//! Owns the closed list of what can be found, the classes that switch it, and what identifies.
//!
//! **Invariant:** the name of a kind never changes its meaning: it stands in interfaces, in ledgers
//! and in the tokens of texts that were redacted long ago.

use serde::{Deserialize, Serialize};

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal in $class:ident, $identifies:literal;)+) => {
        /// One kind of personal data or secret. The list is closed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Kind {
            $($(#[$doc])* #[serde(rename = $text)] $name,)+
        }

        impl Kind {
            /// Every kind, in the order of the reference page.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The name used in interfaces: lower case with underscores.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// The class that switches this kind.
            #[must_use]
            pub const fn class(self) -> Class {
                match self { $(Self::$name => Class::$class,)+ }
            }

            /// Whether this kind alone can point at a person, an account or a device. An age, a
            /// date of birth or a postal code alone cannot.
            #[must_use]
            pub const fn is_identifying(self) -> bool {
                match self { $(Self::$name => $identifies,)+ }
            }
        }
    };
}

kinds! {
    /// An e-mail address.
    Email = "email" in Email, true;
    /// A telephone number.
    Phone = "phone" in Phone, true;
    /// The name of a person, or a part of it.
    PersonName = "person_name" in Name, true;
    /// A street address, or the part of one that leads to a door.
    StreetAddress = "street_address" in Address, true;
    /// A postal code alone.
    PostalCode = "postal_code" in Address, false;
    /// A US Social Security Number.
    UsSsn = "us_ssn" in NationalId, true;
    /// A Japanese individual number (My Number).
    JpMyNumber = "jp_my_number" in NationalId, true;
    /// A UK National Insurance number.
    UkNino = "uk_nino" in NationalId, true;
    /// An Australian tax file number.
    AuTfn = "au_tfn" in NationalId, true;
    /// An Australian Medicare card number.
    AuMedicare = "au_medicare" in NationalId, true;
    /// A Canadian social insurance number.
    CaSin = "ca_sin" in NationalId, true;
    /// A German tax identification number.
    DeTaxId = "de_tax_id" in NationalId, true;
    /// A French social security number (NIR).
    FrNir = "fr_nir" in NationalId, true;
    /// A Spanish DNI or NIE.
    EsDni = "es_dni" in NationalId, true;
    /// An Italian codice fiscale.
    ItFiscalCode = "it_fiscal_code" in NationalId, true;
    /// A Brazilian CPF.
    BrCpf = "br_cpf" in NationalId, true;
    /// An Indian Aadhaar number.
    InAadhaar = "in_aadhaar" in NationalId, true;
    /// A Korean resident registration number.
    KrRrn = "kr_rrn" in NationalId, true;
    /// A Chinese resident identity number.
    CnResidentId = "cn_resident_id" in NationalId, true;
    /// A passport number.
    Passport = "passport" in Document, true;
    /// A driving licence number.
    DriverLicence = "driver_licence" in Document, true;
    /// A payment card number.
    PaymentCard = "payment_card" in Payment, true;
    /// An international bank account number.
    Iban = "iban" in Payment, true;
    /// A bank account, routing, sort or branch number.
    BankAccount = "bank_account" in Payment, true;
    /// An IP address.
    IpAddress = "ip_address" in Network, true;
    /// A network card's address.
    MacAddress = "mac_address" in Network, true;
    /// A web address or domain name.
    Url = "url" in Url, true;
    /// A date of birth.
    DateOfBirth = "date_of_birth" in Birth, false;
    /// A person's age.
    Age = "age" in Birth, false;
    /// A patient's or insured person's number.
    MedicalRecord = "medical_record" in Medical, true;
    /// A crypto-currency wallet.
    CryptoWallet = "crypto_wallet" in Wallet, true;
    /// A key of a programming interface, or another random secret.
    ApiKey = "api_key" in Secret, true;
    /// A signed web token.
    WebToken = "web_token" in Secret, true;
    /// A private key in text form.
    PrivateKey = "private_key" in Secret, true;
    /// A password or personal identification number.
    Password = "password" in Secret, true;
}

impl Kind {
    /// The kind of this name, if it is one of the list.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == name)
    }

    /// Whether a kind has this label.
    pub(crate) fn has_label(label: &str) -> bool {
        let is_capital = |byte: u8| byte.is_ascii_uppercase() || byte == b'_';
        label.bytes().all(is_capital)
            && Self::ALL.iter().any(|kind| kind.as_str().eq_ignore_ascii_case(label))
    }

    /// The word inside a token: the name in capitals.
    pub(crate) fn label(self) -> String {
        self.as_str().to_ascii_uppercase()
    }
}

macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)+) => {
        /// A group of kinds that is switched together.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Class {
            $($(#[$doc])* $name,)+
        }

        impl Class {
            /// Every class.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The name used in configurations.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

classes! {
    /// E-mail addresses.
    Email = "email";
    /// Telephone numbers.
    Phone = "phone";
    /// Names of persons.
    Name = "name";
    /// Addresses and postal codes.
    Address = "address";
    /// National identity, tax and insurance numbers.
    NationalId = "national_id";
    /// Passports and driving licences.
    Document = "document";
    /// Cards and bank accounts.
    Payment = "payment";
    /// Addresses of devices.
    Network = "network";
    /// Web addresses and domains.
    Url = "url";
    /// Dates of birth and ages.
    Birth = "birth";
    /// Numbers of patients.
    Medical = "medical";
    /// Crypto-currency wallets.
    Wallet = "wallet";
    /// Keys, tokens and passwords.
    Secret = "secret";
}

/// Which classes a finder looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Class>", into = "Vec<Class>")]
pub struct Classes(u16);

impl Classes {
    /// Every class.
    #[must_use]
    pub fn all() -> Self {
        Self::none().and_each(Class::ALL)
    }

    /// No class.
    #[must_use]
    pub const fn none() -> Self {
        Self(0)
    }

    /// These and one more.
    #[must_use]
    pub const fn with(self, class: Class) -> Self {
        Self(self.0 | (1 << class as u16))
    }

    /// These without one.
    #[must_use]
    pub const fn without(self, class: Class) -> Self {
        Self(self.0 & !(1 << class as u16))
    }

    /// Whether a class is among them.
    #[must_use]
    pub const fn contains(self, class: Class) -> bool {
        self.0 & (1 << class as u16) != 0
    }

    fn and_each(self, classes: &[Class]) -> Self {
        classes.iter().fold(self, |set, class| set.with(*class))
    }
}

impl Default for Classes {
    fn default() -> Self {
        Self::all()
    }
}

impl From<Vec<Class>> for Classes {
    fn from(classes: Vec<Class>) -> Self {
        Self::none().and_each(&classes)
    }
}

impl From<Classes> for Vec<Class> {
    fn from(classes: Classes) -> Self {
        Class::ALL.iter().copied().filter(|class| classes.contains(*class)).collect()
    }
}

/// One place in a text, in Unicode scalar values, the end not included.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// What was found.
    pub kind: Kind,
    /// Where it starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// How sure this is: 0 to 1. A check digit or a fixed prefix is near 1, a lone first name is
    /// not.
    pub confidence: f32,
}

/// Confidence below which a finding is worth hiding but does not prove that a person is named.
pub const IDENTIFYING_MIN: f32 = 0.5;

/// Whether this finding alone identifies: its kind does, and it is more likely right than wrong.
#[must_use]
pub fn is_identifying(found: &Found) -> bool {
    found.kind.is_identifying() && found.confidence >= IDENTIFYING_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_parsed_from_its_own_name_and_serialises_as_it() {
        for kind in Kind::ALL {
            assert_eq!(Kind::parse(kind.as_str()), Some(*kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
            assert!(kind.label().bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'));
        }
        assert_eq!(Kind::parse("Email"), None);
    }

    #[test]
    fn every_class_serialises_as_its_name_and_switches_a_kind() {
        for class in Class::ALL {
            assert_eq!(serde_json::to_value(class).unwrap(), class.as_str());
            assert!(Kind::ALL.iter().any(|kind| kind.class() == *class));
            assert!(!Classes::all().without(*class).contains(*class));
        }
    }

    #[test]
    fn a_set_of_classes_survives_serialisation() {
        let set = Classes::none().with(Class::Url).with(Class::Secret);
        let text = serde_json::to_string(&set).unwrap();
        assert_eq!(text, r#"["url","secret"]"#);
        assert_eq!(serde_json::from_str::<Classes>(&text).unwrap(), set);
    }

    #[test]
    fn a_date_or_a_guess_does_not_identify() {
        let found = |kind, confidence| Found { kind, start: 0, end: 1, confidence };
        assert!(is_identifying(&found(Kind::Email, 0.9)));
        assert!(!is_identifying(&found(Kind::Email, 0.4)));
        assert!(!is_identifying(&found(Kind::DateOfBirth, 0.9)));
    }
}
