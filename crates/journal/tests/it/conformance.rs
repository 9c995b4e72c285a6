//! One suite, written against the trait alone, run for every engine.

mod commands;
mod homes;
mod leases;
mod log;
mod retention;
mod retries;
mod runs_and_asks;
mod sessions;
mod truncation;
mod values;
mod watch;

/// Makes a test of each function for each engine; one that is not listed here is dead code and warned about.
macro_rules! for_every_engine {
    ($($name:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test]
            async fn $name() {
                super::$name(crate::harness::Engine::Memory).await;
            })+
        }
        mod sqlite {
            $(#[tokio::test]
            async fn $name() {
                super::$name(crate::harness::Engine::Sqlite).await;
            })+
        }
        mod postgres {
            $(#[tokio::test]
            async fn $name() {
                if crate::database::Database::is_installed() {
                    super::$name(crate::harness::Engine::Postgres).await;
                }
            })+
        }
    };
}
use for_every_engine;

/// Makes a test of each function for a database behind a network that loses answers, and behind a pooler, too.
macro_rules! for_every_engine_and_network {
    ($($name:ident),+ $(,)?) => {
        super::for_every_engine!($($name),+);
        mod flaky_postgres {
            $(#[tokio::test]
            async fn $name() {
                if crate::database::Database::is_installed() {
                    super::$name(crate::harness::Engine::FlakyPostgres).await;
                }
            })+
        }
        mod pooled_postgres {
            $(#[tokio::test]
            async fn $name() {
                if crate::database::Database::has_pooler() {
                    super::$name(crate::harness::Engine::PooledPostgres).await;
                }
            })+
        }
    };
}
use for_every_engine_and_network;
