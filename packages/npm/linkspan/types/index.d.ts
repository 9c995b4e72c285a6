// The types of the package, the same everywhere: where no program can be started, `spawn()` and `binaryPath()` say so.

export * from "./node.js";

export type { EventOf, RunOptions, SessionQuery, SessionsChange, TakenPrompt } from "./client.js";
export type { ServerOptions, WebSocketConstructor } from "./server.js";
export type { SpawnOptions } from "./stdio.js";
export type { SubscriptionEvents, SubscriptionState } from "./subscription.js";
export type { WebSocketLike } from "./websocket.js";
export type * from "./bridge.js";

/** Everything that travels, by the names of the server. */
export type * as Wire from "./wire.js";
export type {
  Answer,
  Ask,
  AskSettled,
  Delta,
  Engine,
  Engines,
  Event,
  Item,
  ItemClosed,
  Me,
  Message,
  Notice,
  Outcome,
  Plan,
  Prompt,
  Reasoning,
  RunEnded,
  RunError,
  Session,
  SessionDetail,
  Sessions,
  Submitted,
  ThreadEvent,
  ThreadItem,
  Tool,
  Usage,
  WaitingAsk,
} from "./wire.js";
