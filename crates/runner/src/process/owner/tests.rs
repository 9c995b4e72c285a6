//! Owners that live, owners that are dead, and the agents of both.

use std::process::{Child, Command};
use std::thread;

use super::*;

fn agent(owner: &str, tag: ProcessTag) -> Child {
    let mut command = Command::new("sleep");
    command.arg("60").env(OWNER, owner);
    command.env(VARIABLE, tag.to_string());
    let child = command.spawn().expect("there is a sleep");
    while !tag.is_alive() {
        thread::yield_now();
    }
    child
}

#[test]
fn an_owner_reads_back_and_knows_whether_it_lives() {
    let own = Owner::own();
    assert_eq!(own.to_string().parse(), Ok(own.clone()));
    assert_eq!(own.is_alive(), Some(true));
    let later = Owner {
        started: own.started + 1,
        ..own.clone()
    };
    assert_eq!(later.is_alive(), Some(false));
    let elsewhere = Owner {
        space: "another machine".to_owned(),
        ..own
    };
    assert_eq!(elsewhere.is_alive(), None);
    assert_eq!("7".parse::<Owner>(), Err(NotAnOwner));
}

#[test]
fn agents_of_a_dead_owner_are_ended_and_others_are_not() {
    let [mine, orphaned] = [(); 2].map(|()| ProcessTag::random().unwrap());
    let mut dead = Command::new("true").spawn().unwrap();
    let owner = Owner {
        pid: dead.id(),
        ..Owner::own()
    };
    dead.wait().unwrap();
    let mut kept = agent(&Owner::own().to_string(), mine);
    let mut orphan = agent(&owner.to_string(), orphaned);
    assert!(end_orphans() >= 1);
    assert!(!orphan.wait().unwrap().success());
    assert!(mine.is_alive());
    kept.kill().unwrap();
    kept.wait().unwrap();
}
