import type { LiveEvent } from "../../../src/app/dashboard/api.js";

export type ConnectionState = "connecting" | "open" | "lost" | "report";

type Listener = (event: LiveEvent) => void;

const RETRY_MS = 1000;

/**
 * Without any event, not even a keep-alive, for this long while the page was asleep, the connection
 * is opened anew.
 */
const MAX_SLEEP_MS = 30_000;

/**
 * The page's server-sent events. Reconnects by itself; whenever a connection opens, `onCatchUp`
 * listeners load their data again, because events before it may be missing.
 */
export class LiveConnection {
  private events: EventSource | undefined;
  private runs: readonly string[] = [];
  private retry: ReturnType<typeof setTimeout> | undefined;
  private lostAt: number | undefined;
  private hiddenAt = 0;
  private readonly listeners = new Set<Listener>();
  private readonly catchUps = new Set<() => void>();
  private readonly stateListeners = new Set<(state: ConnectionState) => void>();

  constructor(readonly isReport: boolean) {
    if (isReport) return;
    document.addEventListener("visibilitychange", () => this.handleVisibility());
    window.addEventListener("online", () => this.reopen());
  }

  get state(): ConnectionState {
    if (this.isReport) return "report";
    if (this.lostAt !== undefined) return "lost";
    return this.events?.readyState === EventSource.OPEN ? "open" : "connecting";
  }

  /** Follows these runs in addition to the list. */
  watch(runs: readonly string[]): void {
    if (this.events !== undefined && runs.join("\n") === this.runs.join("\n")) return;
    this.runs = runs;
    this.open();
  }

  onEvent(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  onCatchUp(listener: () => void): () => void {
    this.catchUps.add(listener);
    return () => this.catchUps.delete(listener);
  }

  onState(listener: (state: ConnectionState) => void): () => void {
    this.stateListeners.add(listener);
    return () => this.stateListeners.delete(listener);
  }

  private open(): void {
    if (this.isReport) return;
    clearTimeout(this.retry);
    this.events?.close();
    const query = this.runs.map((run) => `run=${encodeURIComponent(run)}`).join("&");
    const events = new EventSource(query === "" ? "/api/events" : `/api/events?${query}`);
    this.events = events;
    events.addEventListener("open", () => {
      this.lostAt = undefined;
      this.publishState();
      for (const catchUp of this.catchUps) catchUp();
    });
    events.addEventListener("message", ({ data }: MessageEvent<string>) => {
      const event = JSON.parse(data) as LiveEvent;
      for (const listener of this.listeners) listener(event);
    });
    events.addEventListener("error", () => {
      this.lostAt ??= Date.now();
      this.publishState();
      // A refused connection is not retried by the browser.
      clearTimeout(this.retry);
      if (events.readyState === EventSource.CLOSED) this.retry = setTimeout(() => this.open(), RETRY_MS);
    });
    this.publishState();
  }

  private reopen(): void {
    this.lostAt ??= Date.now();
    this.open();
  }

  private handleVisibility(): void {
    if (document.hidden) this.hiddenAt = Date.now();
    else if (this.events !== undefined && Date.now() - this.hiddenAt > MAX_SLEEP_MS) this.reopen();
  }

  private publishState(): void {
    for (const listener of this.stateListeners) listener(this.state);
  }
}
