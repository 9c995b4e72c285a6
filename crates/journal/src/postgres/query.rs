//! Statements with their parameters, alone or several in one flight.
//!
//! Statements are unnamed and carry the types of their parameters: one round trip, and nothing that a pooler
//! between here and the database would have to remember.

use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql, Type};

use uuid::Uuid;

use super::client::Client;
use super::text::{Text, decode};
use crate::error::{Fault, Result};
use crate::write_id::WriteId;

/// What a parameter is in PostgreSQL.
pub(super) trait Parameter: ToSql + Send + Sync {
    const TYPE: Type;
}

impl Parameter for bool {
    const TYPE: Type = Type::BOOL;
}

impl Parameter for i64 {
    const TYPE: Type = Type::INT8;
}

impl Parameter for Uuid {
    const TYPE: Type = Type::UUID;
}

impl Parameter for Text<'_> {
    const TYPE: Type = Type::TEXT;
}

impl Parameter for &[u8] {
    const TYPE: Type = Type::BYTEA;
}

impl Parameter for Vec<i64> {
    const TYPE: Type = Type::INT8_ARRAY;
}

impl Parameter for Vec<Option<i64>> {
    const TYPE: Type = Type::INT8_ARRAY;
}

impl Parameter for Vec<Text<'_>> {
    const TYPE: Type = Type::TEXT_ARRAY;
}

impl Parameter for Vec<&[u8]> {
    const TYPE: Type = Type::BYTEA_ARRAY;
}

impl Parameter for Vec<Option<&[u8]>> {
    const TYPE: Type = Type::BYTEA_ARRAY;
}

impl<T: Parameter> Parameter for Option<T> {
    const TYPE: Type = T::TYPE;
}

/// A statement to be sent.
pub(super) struct Query<'a> {
    sql: &'a str,
    is_hot: bool,
    params: Vec<(Box<dyn ToSql + Send + Sync + 'a>, Type)>,
}

impl<'a> Query<'a> {
    pub(super) fn new(sql: &'a str) -> Self {
        Self {
            sql,
            is_hot: false,
            params: Vec::new(),
        }
    }

    /// One that is used all the time, see [`Client::query_hot`].
    pub(super) fn hot(self) -> Self {
        Self {
            is_hot: true,
            ..self
        }
    }

    /// Adds the value of the next parameter.
    pub(super) fn bind<T: Parameter + 'a>(mut self, value: T) -> Self {
        self.params.push((Box::new(value), T::TYPE));
        self
    }

    /// The same for a string.
    pub(super) fn text(self, text: &'a str) -> Self {
        self.bind(Text::from(text))
    }

    pub(super) fn id(self, id: WriteId) -> Self {
        self.bind(id.uuid())
    }

    async fn send(&self, client: &Client) -> Result<Vec<Row>, tokio_postgres::Error> {
        let params = self.params.iter();
        let params: Vec<_> = params
            .map(|(value, ty)| (&**value as &(dyn ToSql + Sync), ty.clone()))
            .collect();
        match self.is_hot {
            true => client.query_hot(self.sql, &params).await,
            false => client.query_typed(self.sql, &params).await,
        }
    }

    pub(super) async fn rows(&self, client: &Client) -> Result<Vec<Row>> {
        Ok(self.send(client).await.map_err(Fault::from)?)
    }

    pub(super) async fn row(&self, client: &Client) -> Result<Option<Row>> {
        Ok(self.rows(client).await?.into_iter().next())
    }
}

/// Sends these statements together and returns the rows of each. What follows a failed one in a transaction
/// fails because of it, so the first failure is the one to tell.
pub(super) async fn flight(client: &Client, queries: &[Query<'_>]) -> Result<Vec<Vec<Row>>> {
    let mut sent: Vec<Pin<Box<_>>> = queries.iter().map(|it| Box::pin(it.send(client))).collect();
    let mut answers: Vec<Option<Result<Vec<Row>, _>>> = sent.iter().map(|_| None).collect();
    // In order: a statement is sent when its future is first polled.
    std::future::poll_fn(|cx| {
        let mut is_pending = false;
        for (sent, answer) in sent.iter_mut().zip(&mut answers) {
            if answer.is_none() {
                match sent.as_mut().poll(cx) {
                    Poll::Ready(it) => *answer = Some(it),
                    Poll::Pending => is_pending = true,
                }
            }
        }
        if is_pending {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
    let answers = answers.into_iter().flatten();
    let rows = answers.collect::<Result<Vec<_>, _>>();
    Ok(rows.map_err(Fault::from)?)
}

/// A column of a row.
pub(super) fn get<'r, T: FromSql<'r>>(row: &'r Row, column: usize) -> Result<T> {
    Ok(row.try_get(column).map_err(Fault::from)?)
}

/// A count or a number, which columns hold as signed integers.
pub(super) fn number(row: &Row, column: usize) -> Result<u64> {
    Ok(get::<i64>(row, column)? as u64)
}

pub(super) fn text(row: &Row, column: usize) -> Result<String> {
    Ok(decode(get(row, column)?))
}

pub(super) fn optional_text(row: &Row, column: usize) -> Result<Option<String>> {
    Ok(get::<Option<&str>>(row, column)?.map(decode))
}

pub(super) fn bytes(row: &Row, column: usize) -> Result<Bytes> {
    Ok(Bytes::copy_from_slice(get(row, column)?))
}

/// Cursors come from clients: a number beyond the column's type is simply the end.
pub(super) fn cursor(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
