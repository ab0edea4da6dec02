import type { ComponentType, JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { RunList, RunRow } from "../../src/app/dashboard/api.js";
import { DashboardContext, useResource, type Dashboard } from "./data/context.js";
import { ErrorBoundary } from "./data/error-boundary.js";
import type { ConnectionState, LiveConnection } from "./data/live.js";
import type { Source } from "./data/source.js";
import { Banner } from "./parts/controls.js";
import { Sidebar, type ViewLink } from "./parts/sidebar.js";
import { useRoute, type ViewProps } from "./route.js";
import { useTheme } from "./theme.js";
import { CompareView } from "./views/compare.js";
import { ControlView } from "./views/control.js";
import { CurvesView } from "./views/curves.js";
import { EpisodesView } from "./views/episodes.js";
import { GroupsView } from "./views/groups.js";
import { HealthView } from "./views/health.js";
import { OpponentsView } from "./views/opponents.js";
import { PlayView } from "./views/play.js";
import { RunsView } from "./views/runs.js";
import { SweepView } from "./views/sweep.js";
import { TokensView } from "./views/tokens.js";
import { WorkersView } from "./views/workers.js";

interface View extends ViewLink {
  readonly component: ComponentType<ViewProps>;
  /** Shown for runs with workers. */
  readonly needsJobs?: boolean;
  /** Shown for runs in self-play. */
  readonly needsSelfPlay?: boolean;
}

const VIEWS: readonly View[] = [
  { view: "runs", title: "Runs", component: RunsView },
  { view: "curves", title: "Curves", component: CurvesView },
  { view: "episodes", title: "Episodes", component: EpisodesView },
  { view: "tokens", title: "Tokens", component: TokensView },
  { view: "groups", title: "Groups", component: GroupsView },
  { view: "compare", title: "Compare", component: CompareView },
  { view: "opponents", title: "Opponents", component: OpponentsView, needsSelfPlay: true },
  { view: "play", title: "Play", component: PlayView, isLive: true },
  { view: "control", title: "Control", component: ControlView, isLive: true },
  { view: "health", title: "Health", component: HealthView },
  { view: "workers", title: "Workers", component: WorkersView, needsJobs: true },
];

/** The page: navigation on the left, the open view on the right. */
export function App({ source, live }: { readonly source: Source; readonly live: LiveConnection }): JSX.Element {
  const route = useRoute();
  const [theme, toggleTheme] = useTheme();
  const connection = useConnection(live);
  const { list, error, reload } = useRunList(source, live);
  const wanted = route.params.getAll("run");
  const isListed = list !== undefined && (wanted.length === 0 || list.runs.some(({ id }) => wanted.includes(id)));
  const selected = useMemo(() => selectRuns(list?.runs ?? [], wanted), [list, wanted.join("\n")]);
  const { hasJobs = false, isSelfPlay = false } = list?.runs.find(({ id }) => id === selected[0]) ?? {};
  useEffect(() => live.watch(selected), [live, selected.join("\n")]);
  const { component: Component, title } =
    route.view === "sweep"
      ? { component: SweepView, title: "Sweep" }
      : (VIEWS.find(({ view }) => view === route.view) ?? VIEWS[0]);
  useEffect(() => {
    document.title = `${title} – llamagym`;
  }, [title]);

  const dashboard: Dashboard | undefined = list && {
    source,
    live,
    root: list.root,
    runs: list.runs,
    sweeps: list.sweeps,
    selected,
    reloadRuns: reload,
  };
  return (
    <div class="shell">
      <a class="skip-link" href="#main" onClick={(event) => focusMain(event)}>
        Skip to the view
      </a>
      <Sidebar
        links={VIEWS.filter(
          ({ isLive, needsJobs, needsSelfPlay }) =>
            !(isLive && source.isReport) && !(needsJobs && !hasJobs) && !(needsSelfPlay && !isSelfPlay),
        )}
        active={route.view}
        selected={selected}
        connection={connection}
        theme={theme}
        onToggleTheme={toggleTheme}
      />
      <main id="main" tabIndex={-1}>
        {connection === "lost" && <Banner kind="warning">Connection lost. The page reconnects by itself.</Banner>}
        {error && <Banner kind="error">{error.message}</Banner>}
        {dashboard && !isListed && (
          <Banner kind="warning">
            There is no run {wanted.join(", ")} in {dashboard.root}. It is shown as soon as it is there.
          </Banner>
        )}
        {dashboard && isListed && (
          <DashboardContext.Provider value={dashboard}>
            <ErrorBoundary key={`${route.view} ${selected[0] ?? ""}`}>
              <Component route={route} />
            </ErrorBoundary>
          </DashboardContext.Provider>
        )}
      </main>
    </div>
  );
}

/** The hash is the address of the view, so the link moves the focus itself. */
function focusMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function useConnection(live: LiveConnection): ConnectionState {
  const [state, setState] = useState(live.state);
  useEffect(() => live.onState(setState), [live]);
  return state;
}

/** Loads the list of runs and keeps it current. */
function useRunList(source: Source, live: LiveConnection) {
  const { data, error, reload } = useResource<RunList>(source, live, "/api/runs");
  const [list, setList] = useState(data);
  useEffect(() => setList(data), [data]);
  useEffect(
    () =>
      live.onEvent((event) => {
        if (event.type !== "runs") return;
        // Trials have their place in the list of sweeps, which events do not contain.
        if (event.rows.some(({ sweep }) => sweep !== null)) reload();
        setList((old) => old && { ...old, runs: mergeRows(old.runs, event.rows, event.removed) });
      }),
    [live, reload],
  );
  return { list, error, reload };
}

function mergeRows(old: readonly RunRow[], rows: readonly RunRow[], removed: readonly string[]): RunRow[] {
  const changed = new Map(rows.map((row) => [row.id, row]));
  const gone = new Set(removed);
  const kept = old.filter(({ id }) => !gone.has(id)).map((row) => changed.get(row.id) ?? row);
  const known = new Set(old.map(({ id }) => id));
  return [...rows.filter(({ id }) => !known.has(id)), ...kept];
}

/** Keeps the wanted runs that exist; without any, selects the one that changed last. */
function selectRuns(runs: readonly RunRow[], wanted: readonly string[]): readonly string[] {
  const existing = wanted.filter((id) => runs.some((row) => row.id === id));
  if (existing.length > 0 || runs.length === 0) return existing;
  const newest = runs.reduce((best, row) => ((row.changedMs ?? 0) > (best.changedMs ?? 0) ? row : best));
  return [newest.id];
}
