import { useEffect, useState } from "preact/hooks";
import type { EpisodeList, EpisodeRow } from "../../../src/app/dashboard/api.js";
import { useDashboard, useGet, useLiveEvent } from "./context.js";
import { runPath } from "./source.js";

/** Episodes of one request. */
const PAGE_SIZE = 200;

/**
 * Recorded episodes of a run, newest first; new ones arrive as events, older ones by `loadMore`.
 */
export interface Episodes {
  readonly list: EpisodeList | undefined;
  readonly error: Error | undefined;
  readonly loadMore: () => void;
}

export function useEpisodes(run: string | undefined): Episodes {
  const { source } = useDashboard();
  const { data, error, reload } = useGet<EpisodeList>(
    run === undefined ? undefined : runPath(run, `/episodes?limit=${PAGE_SIZE}`),
  );
  const [older, setOlder] = useState<readonly EpisodeRow[]>([]);
  const [isLoading, setLoading] = useState(false);
  useEffect(() => setOlder([]), [run]);
  useLiveEvent("episodes", (event) => event.run === run && reload());

  const known = new Set(data?.episodes.map(({ id }) => id));
  const episodes = [...(data?.episodes ?? []), ...older.filter(({ id }) => !known.has(id))];
  const loadMore = (): void => {
    const last = episodes[episodes.length - 1];
    if (run === undefined || last === undefined || isLoading) return;
    setLoading(true);
    source
      .get<EpisodeList>(runPath(run, `/episodes?limit=${PAGE_SIZE}&before=${encodeURIComponent(last.id)}`))
      .then((page) => setOlder((old) => [...old, ...page.episodes]))
      .finally(() => setLoading(false))
      // The next scroll tries again.
      .catch(() => {});
  };
  return { list: data && { ...data, episodes }, error, loadMore };
}
