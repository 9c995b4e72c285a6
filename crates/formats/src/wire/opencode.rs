//! OpenCode's two streams, as observed from 1.18.33: the lines of `opencode run --format json`, and
//! the events of `opencode serve`. Both carry the same parts. A few fields of earlier versions are
//! read too: `delta` beside a part, `permission.updated`.

use super::lenient::{Any, Boxed, Flag, List, Num, Str};

object! {
    /// A line of `run`, or an event of `serve`.
    Line {
        r#type: Str<'a> = "type",
        // `run`
        timestamp: Num = "timestamp",
        session_id: Str<'a> = "sessionID",
        part: Boxed<Part<'a>> = "part",
        error: Any<'a> = "error",
        // `serve`
        id: Str<'a> = "id",
        properties: Boxed<Properties<'a>> = "properties",
        /// The event, where a server serves several directories.
        payload: Any<'a> = "payload",
    }

    /// What an event of the server is about.
    Properties {
        session_id: Str<'a> = "sessionID",
        info: Any<'a> = "info",
        part: Boxed<Part<'a>> = "part",
        time: Num = "time",
        message_id: Str<'a> = "messageID",
        part_id: Str<'a> = "partID",
        field: Str<'a> = "field",
        delta: Any<'a> = "delta",
        status: Any<'a> = "status",
        error: Any<'a> = "error",
        todos: Any<'a> = "todos",
        // Permissions and questions.
        id: Str<'a> = "id",
        permission: Str<'a> = "permission",
        r#type: Str<'a> = "type",
        title: Any<'a> = "title",
        patterns: List<Str<'a>> = "patterns",
        metadata: Any<'a> = "metadata",
        always: Any<'a> = "always",
        tool: Any<'a> = "tool",
        call_id: Str<'a> = "callID",
        questions: Any<'a> = "questions",
        answers: Any<'a> = "answers",
        request_id: Str<'a> = "requestID",
        permission_id: Str<'a> = "permissionID",
        reply: Str<'a> = "reply",
        response: Str<'a> = "response",
        message: Any<'a> = "message",
    }

    /// A part of a message, of any type.
    Part {
        id: Str<'a> = "id",
        message_id: Str<'a> = "messageID",
        session_id: Str<'a> = "sessionID",
        r#type: Str<'a> = "type",
        text: Any<'a> = "text",
        synthetic: Flag = "synthetic",
        time: Any<'a> = "time",
        // `tool`
        tool: Str<'a> = "tool",
        call_id: Str<'a> = "callID",
        // `run` prints a call when it has ended: there is no line for its start.
        state: Boxed<State<'a>> = "state",
        // `step-finish`
        reason: Str<'a> = "reason",
        tokens: Any<'a> = "tokens",
        cost: Num = "cost",
        // `file`
        mime: Str<'a> = "mime",
        url: Any<'a> = "url",
        // `compaction`
        auto: Flag = "auto",
        // `retry`
        error: Any<'a> = "error",
    }

    /// When a part began and ended, in milliseconds since 1970.
    Time {
        start: Num = "start",
        end: Num = "end",
        completed: Num = "completed",
    }

    /// How far a tool call is.
    State {
        status: Str<'a> = "status",
        input: Any<'a> = "input",
        /// The input as far as it has come, while the call is pending.
        raw: Any<'a> = "raw",
        output: Any<'a> = "output",
        error: Any<'a> = "error",
        title: Any<'a> = "title",
        metadata: Any<'a> = "metadata",
        time: Any<'a> = "time",
        /// Pictures and files that belong to the output.
        attachments: Any<'a> = "attachments",
    }

    /// A file part beside an output.
    Attachment {
        url: Any<'a> = "url",
    }

    /// What a tool reports besides its output.
    Metadata {
        // A command that failed is `completed` as well: only its exit code tells.
        exit: Num = "exit",
        output: Any<'a> = "output",
        // Of the sub-agent that `task` has started.
        session_id: Str<'a> = "sessionId",
        // Only this tells a new file from one that was written over.
        exists: Flag = "exists",
        diff: Any<'a> = "diff",
        filediff: Boxed<FileDiff<'a>> = "filediff",
        files: List<FileDiff<'a>> = "files",
    }

    /// A change to a file: as a patch, or in earlier versions by its text before and after.
    FileDiff {
        file: Any<'a> = "file",
        file_path: Any<'a> = "filePath",
        patch: Any<'a> = "patch",
        diff: Any<'a> = "diff",
        before: Any<'a> = "before",
        after: Any<'a> = "after",
    }

    Tokens {
        total: Num = "total",
        /// Without what was read from or written to the cache.
        input: Num = "input",
        /// Without reasoning.
        output: Num = "output",
        reasoning: Num = "reasoning",
        cache: Boxed<Cache<'a>> = "cache",
    }

    Cache {
        read: Num = "read",
        write: Num = "write",
    }

    Error {
        name: Str<'a> = "name",
        message: Any<'a> = "message",
        data: Boxed<ErrorData<'a>> = "data",
    }

    ErrorData {
        message: Any<'a> = "message",
        status: Num = "statusCode",
    }

    /// A session, in `session.created` and `session.updated`.
    Session {
        id: Str<'a> = "id",
        parent_id: Str<'a> = "parentID",
        directory: Str<'a> = "directory",
        version: Str<'a> = "version",
        model: Boxed<Model<'a>> = "model",
        cost: Num = "cost",
        tokens: Any<'a> = "tokens",
    }

    /// A message, in `message.updated`.
    Message {
        id: Str<'a> = "id",
        role: Str<'a> = "role",
        session_id: Str<'a> = "sessionID",
        provider_id: Str<'a> = "providerID",
        model_id: Str<'a> = "modelID",
        path: Boxed<Path<'a>> = "path",
        summary: Flag = "summary",
        time: Any<'a> = "time",
        error: Any<'a> = "error",
    }

    Model {
        id: Str<'a> = "id",
        model_id: Str<'a> = "modelID",
        provider_id: Str<'a> = "providerID",
    }

    Path {
        cwd: Str<'a> = "cwd",
    }

    /// What a session is doing.
    Status {
        r#type: Str<'a> = "type",
        attempt: Num = "attempt",
        message: Any<'a> = "message",
    }

    /// The call a permission or a question is about.
    Call {
        call_id: Str<'a> = "callID",
    }

    Question {
        question: Any<'a> = "question",
    }
}
