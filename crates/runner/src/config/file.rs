//! The user's TOML file: which one it is, and each of its keys with its line.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::keys::{self, ACP, KeySpec, PROVIDERS, RESPONSES, SECTIONS, SectionSpec, ValueKind};
use super::value::{self, duration, expected};
use super::{Error, Origin, Setting, Value};
use crate::engines;

/// A file of settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub path: PathBuf,
    /// Whether the user named it; then it has to exist.
    pub is_named: bool,
}

impl File {
    /// The one of `--config`, else of `LINKSPAN_CONFIG`, else `linkspan/config.toml` in the user's
    /// config directory; none when the user has no home.
    pub fn find(named: Option<&Path>, variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let from_variable = || variable("LINKSPAN_CONFIG").filter(|it| !it.is_empty());
        let named = named.map(Path::to_owned);
        if let Some(path) = named.or_else(|| from_variable().map(PathBuf::from)) {
            let is_named = true;
            return Some(Self { path, is_named });
        }
        let strategy = etcetera::choose_base_strategy().ok()?;
        Some(Self {
            path: strategy.config_dir().join("linkspan/config.toml"),
            is_named: false,
        })
    }

    /// Its content; `None` when it does not exist and is optional.
    pub(super) fn text(&self) -> Result<Option<String>, Error> {
        match fs::read_to_string(&self.path) {
            Ok(text) => Ok(Some(text)),
            // A file that the user has named and that is missing is a mistake, not an empty config.
            Err(err) if err.kind() == ErrorKind::NotFound && !self.is_named => Ok(None),
            Err(source) => Err(Error::Read {
                path: self.path.clone(),
                source,
            }),
        }
    }
}

/// Every key that the file sets.
pub(super) fn read(path: &Path, text: &str) -> Result<Vec<Setting>, Error> {
    let mut file = Document {
        path,
        text,
        settings: Vec::new(),
        written: BTreeMap::new(),
    };
    let table = DeTable::parse(text).map_err(|err| Error::Syntax {
        path: path.to_owned(),
        line: file.line(err.span().map_or(0, |it| it.start)),
        message: err.message().to_owned(),
    })?;
    file.top(table.get_ref())?;
    Ok(file.settings)
}

struct Document<'a> {
    path: &'a Path,
    text: &'a str,
    settings: Vec<Setting>,
    /// Where each key was given, and under which name.
    written: BTreeMap<String, (String, usize)>,
}

/// A table of the file.
struct FileTable<'a> {
    /// The prefix of its keys.
    path: &'a str,
    /// The same as the file spells it.
    written: &'a str,
    section: &'a SectionSpec,
}

type Name<'i> = Spanned<Cow<'i, str>>;
type TableContent<'i> = Spanned<DeValue<'i>>;

impl Document<'_> {
    fn top(&mut self, table: &DeTable<'_>) -> Result<(), Error> {
        let top = FileTable {
            path: "",
            written: "",
            section: &SECTIONS[0],
        };
        for (name, content) in table {
            match name.get_ref().as_ref() {
                "engines" => self.engines(self.table("engines", content)?)?,
                // Takopi's own place for it.
                "claude" => self.known("engines.claude", "claude", name, content)?,
                path @ ("journal" | "serve") => self.known(path, path, name, content)?,
                _ => self.key(&top, name, content)?,
            }
        }
        Ok(())
    }

    fn engines(&mut self, table: &DeTable<'_>) -> Result<(), Error> {
        for (name, content) in table {
            let path = format!("engines.{}", name.get_ref());
            match name.get_ref().as_ref() {
                engines::ACP => self.named(&path, &ACP, content)?,
                engines::RESPONSES => self.named(&path, &RESPONSES, content)?,
                _ => self.known(&path, &path, name, content)?,
            }
        }
        Ok(())
    }

    /// A table that [`SECTIONS`] has under this path.
    fn known(
        &mut self,
        path: &str,
        written: &str,
        name: &Name<'_>,
        content: &TableContent<'_>,
    ) -> Result<(), Error> {
        let Some(section) = SECTIONS.iter().find(|it| it.path == path) else {
            let paths = SECTIONS.iter().map(|it| it.path);
            let names = paths.filter_map(|it| it.strip_prefix("engines."));
            let known = names.chain([engines::ACP, engines::RESPONSES]);
            return Err(self.unknown(path.to_owned(), known, name));
        };
        self.section(path, written, section, content)
    }

    /// The tables of agents and endpoints that the user has named.
    fn named(
        &mut self,
        path: &str,
        section: &'static SectionSpec,
        content: &TableContent<'_>,
    ) -> Result<(), Error> {
        for (name, content) in self.table(path, content)? {
            let path = keys::full(path, name.get_ref());
            self.section(&path, &path, section, content)?;
            let missing = section.required.as_ref();
            if let Some(required) =
                missing.filter(|it| !self.written.contains_key(&keys::full(&path, it.key)))
            {
                return Err(Error::Missing {
                    path: self.path.to_owned(),
                    line: self.line(name.span().start),
                    key: path,
                    required,
                });
            }
        }
        Ok(())
    }

    fn section(
        &mut self,
        path: &str,
        written: &str,
        section: &SectionSpec,
        content: &TableContent<'_>,
    ) -> Result<(), Error> {
        let table = FileTable {
            path,
            written,
            section,
        };
        for (name, content) in self.table(written, content)? {
            self.key(&table, name, content)?;
        }
        Ok(())
    }

    fn key(
        &mut self,
        table: &FileTable<'_>,
        name: &Name<'_>,
        content: &TableContent<'_>,
    ) -> Result<(), Error> {
        let key = keys::full(table.path, name.get_ref());
        let written = keys::full(table.written, name.get_ref());
        // By the path of the table of keys, which has `NAME` where the file has the user's name.
        let inner = keys::full(table.section.path, name.get_ref());
        if let Some(section) = PROVIDERS.iter().find(|it| it.path == inner) {
            return self.section(&key, &written, section, content);
        }
        let Some(row) = table.section.keys().find(|it| it.name == name.get_ref()) else {
            let known = table.section.keys().map(|it| it.name);
            let known = known.chain(table.section.tables.iter().copied());
            return Err(self.unknown(written, known, name));
        };
        let line = self.line(name.span().start);
        // TOML finds equal keys itself, but not that `[claude]` is `[engines.claude]`.
        if let Some((other, other_line)) = self.written.get(&key) {
            return Err(Error::Twice {
                path: self.path.to_owned(),
                line,
                key: written,
                other: other.clone(),
                other_line: *other_line,
            });
        }
        let value = self.value(row, &written, content)?;
        self.written.insert(key.clone(), (written, line));
        let path = self.path.to_owned();
        self.settings.push(Setting {
            key,
            value,
            origin: Origin::File { path, line },
        });
        Ok(())
    }

    fn value(
        &self,
        row: &KeySpec,
        written: &str,
        content: &TableContent<'_>,
    ) -> Result<Value, Error> {
        let wrong = |it: &TableContent<'_>| {
            // The values of an environment may be secrets.
            let found = match row.kind {
                ValueKind::Table | ValueKind::Secret => "something else".to_owned(),
                _ => found(it.get_ref()),
            };
            let mut err = self.wrong(written, it, found, expected(row.kind));
            if let (Error::WrongType { meant, .. }, DeValue::String(text)) =
                (&mut err, it.get_ref())
            {
                *meant = value::meant(row.kind, text);
            }
            err
        };
        let text = |it: &TableContent<'_>| match it.get_ref() {
            // Arguments and variables cannot hold a NUL; the start would fail much later.
            DeValue::String(text) if !text.contains('\0') => Ok(text.to_string()),
            _ => Err(wrong(it)),
        };
        let value = match (row.kind, content.get_ref()) {
            (ValueKind::Switch | ValueKind::SwitchOrAuto, DeValue::Boolean(it)) => {
                Some(Value::Switch(*it))
            }
            (ValueKind::List, DeValue::Array(items)) => {
                let items: Result<_, _> = items.iter().map(text).collect();
                Some(Value::List(items?))
            }
            (ValueKind::Table, DeValue::Table(table)) => {
                let pairs = table.iter();
                let pairs = pairs.map(|(name, it)| self.variable(written, name, it));
                Some(Value::Table(pairs.collect::<Result<_, Error>>()?))
            }
            (ValueKind::Seconds, DeValue::Integer(it)) => {
                integer(it).and_then(duration).map(Value::Seconds)
            }
            (ValueKind::Seconds, DeValue::Float(it)) => {
                Value::from_text(row.kind, it.as_str()).ok()
            }
            (ValueKind::Number | ValueKind::Size, DeValue::Integer(it)) => {
                // TOML has hexadecimal, octal and binary numbers, too.
                let number = u64::from_str_radix(it.as_str(), it.radix());
                number.ok().map(Value::Number)
            }
            (ValueKind::Count, DeValue::Integer(it)) => {
                Value::from_text(row.kind, it.as_str()).ok()
            }
            (
                ValueKind::Text
                | ValueKind::Secret
                | ValueKind::Choice(_)
                | ValueKind::Mode
                | ValueKind::Engine
                | ValueKind::Size
                | ValueKind::SwitchOrAuto,
                DeValue::String(it),
            ) => Value::from_text(row.kind, it).ok(),
            _ => None,
        };
        value.ok_or_else(|| wrong(content))
    }

    fn table<'t, 'i>(
        &self,
        key: &str,
        content: &'t TableContent<'i>,
    ) -> Result<&'t DeTable<'i>, Error> {
        match content.get_ref() {
            DeValue::Table(it) => Ok(it),
            it => Err(self.wrong(key, content, found(it), "a table".to_owned())),
        }
    }

    /// One variable of an environment; its value is not repeated, because it may be a secret.
    fn variable(
        &self,
        written: &str,
        name: &Name<'_>,
        content: &TableContent<'_>,
    ) -> Result<(String, String), Error> {
        let key = keys::full(written, name.get_ref());
        let wrong = |found: &str, expected: &str| {
            self.wrong(&key, content, found.to_owned(), expected.to_owned())
        };
        if name.get_ref().is_empty() || name.get_ref().contains(['=', '\0']) {
            return Err(wrong("no variable", "a name without `=`"));
        }
        match content.get_ref() {
            DeValue::String(text) if !text.contains('\0') => {
                Ok((name.get_ref().to_string(), text.to_string()))
            }
            _ => Err(wrong("something else", "a string")),
        }
    }

    fn wrong(
        &self,
        key: &str,
        content: &TableContent<'_>,
        found: String,
        expected: String,
    ) -> Error {
        Error::WrongType {
            path: self.path.to_owned(),
            line: self.line(content.span().start),
            key: key.to_owned(),
            found,
            expected,
            meant: None,
        }
    }

    fn unknown<'n>(
        &self,
        key: String,
        known: impl Iterator<Item = &'n str>,
        name: &Name<'_>,
    ) -> Error {
        Error::UnknownKey {
            path: self.path.to_owned(),
            line: self.line(name.span().start),
            key,
            known: known.map(str::to_owned).collect(),
        }
    }

    fn line(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().iter().take(offset);
        1 + before.filter(|it| **it == b'\n').count()
    }
}

/// Long enough for any time-out, and never more than a float can hold.
fn integer(it: &DeInteger<'_>) -> Option<f64> {
    let number = i64::from_str_radix(it.as_str(), it.radix()).ok()?;
    u32::try_from(number).ok().map(f64::from)
}

/// The value that was found, for error messages.
fn found(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(it) if it.len() <= 40 => format!("{it:?}"),
        // It may be a key in the wrong place, which an error should not repeat.
        DeValue::String(_) => "a long string".to_owned(),
        DeValue::Integer(it) => it.as_str().to_owned(),
        DeValue::Float(it) => it.as_str().to_owned(),
        DeValue::Boolean(it) => it.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
