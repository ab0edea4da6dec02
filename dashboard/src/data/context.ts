import { createContext } from "preact";
import { useCallback, useContext, useEffect, useRef, useState } from "preact/hooks";
import type { LiveEvent, RunRow, SweepRow } from "../../../src/app/dashboard/api.js";
import type { LiveConnection } from "./live.js";
import type { Source } from "./source.js";

/** What every view reads. */
export interface Dashboard {
  readonly source: Source;
  readonly live: LiveConnection;
  readonly root: string;
  readonly runs: readonly RunRow[];
  readonly sweeps: readonly SweepRow[];
  /** Ids of the selected runs that exist, at least one if there is any run. */
  readonly selected: readonly string[];
  readonly reloadRuns: () => void;
}

export const DashboardContext = createContext<Dashboard | undefined>(undefined);

export function useDashboard(): Dashboard {
  const dashboard = useContext(DashboardContext);
  if (dashboard === undefined) throw new Error("useDashboard outside DashboardContext");
  return dashboard;
}

/** Data of a request, kept while it is loaded again. */
export interface Resource<Answer> {
  readonly data: Answer | undefined;
  readonly error: Error | undefined;
  readonly reload: () => void;
}

/**
 * Milliseconds between two loads of the same data, so that a fast run does not keep the page busy.
 */
const RELOAD_INTERVAL_MS = 300;

/** Loads that take longer than this fraction of the interval make it longer. */
const MAX_LOAD_FRACTION = 0.25;

/**
 * Loads data by `load`, again whenever `key` changes, `reload` is called or the connection was
 * lost. Nothing is loaded without a key. Data of the previous key stay until the next arrive, so
 * that views do not flash.
 */
export function useLoad<Answer>(
  live: LiveConnection,
  key: string | undefined,
  load: () => Promise<Answer>,
): Resource<Answer> {
  const [state, setState] = useState<{ key?: string; data?: Answer; error?: Error }>({});
  const latest = useRef(load);
  latest.current = load;
  const timing = useRef({ version: 0, startedAt: 0, tookMs: 0 });
  const pending = useRef<ReturnType<typeof setTimeout>>();

  const start = useCallback(() => {
    if (key === undefined) return;
    const version = ++timing.current.version;
    timing.current.startedAt = Date.now();
    const finish = (update: (old: { data?: Answer }) => { data?: Answer; error?: Error }): void => {
      timing.current.tookMs = Date.now() - timing.current.startedAt;
      if (version === timing.current.version) setState((old) => ({ ...update(old), key }));
    };
    latest.current().then(
      (data) => finish(() => ({ data })),
      (error: Error) => finish(({ data }) => ({ data, error })),
    );
  }, [key]);
  const reload = useCallback(() => {
    if (pending.current !== undefined) return;
    const { startedAt, tookMs } = timing.current;
    const interval = Math.max(RELOAD_INTERVAL_MS, tookMs / MAX_LOAD_FRACTION);
    pending.current = setTimeout(
      () => {
        pending.current = undefined;
        start();
      },
      Math.max(0, startedAt + interval - Date.now()),
    );
  }, [start]);

  useEffect(() => {
    start();
    return () => {
      timing.current.version++;
      clearTimeout(pending.current);
      pending.current = undefined;
    };
  }, [start]);
  useEffect(() => live.onCatchUp(reload), [live, reload]);
  return { data: state.data, error: state.key === key ? state.error : undefined, reload };
}

/** Requests `path`; see `useLoad`. */
export function useResource<Answer>(source: Source, live: LiveConnection, path: string | undefined): Resource<Answer> {
  return useLoad(live, path, () => source.get<Answer>(path!));
}

/** Requests `path` with the page's source. */
export function useGet<Answer>(path: string | undefined): Resource<Answer> {
  const { source, live } = useDashboard();
  return useResource<Answer>(source, live, path);
}

/** Calls `listener` for each event of the kind. */
export function useLiveEvent<Kind extends LiveEvent["type"]>(
  kind: Kind,
  listener: (event: Extract<LiveEvent, { type: Kind }>) => void,
): void {
  const { live } = useDashboard();
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(
    () =>
      live.onEvent((event) => {
        if (event.type === kind) latest.current(event as Extract<LiveEvent, { type: Kind }>);
      }),
    [live, kind],
  );
}
