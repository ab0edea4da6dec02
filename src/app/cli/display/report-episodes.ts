import { formatCount } from "../../../core/format.js";
import { fractionFields } from "../../tracking/progress/progress-fields.js";
import type { Reporter } from "../reporter.js";

/** Shows how many episodes have finished, until `end` is called. */
export function reportEpisodes(
  reporter: Reporter,
  total: number,
  label = "Evaluation",
): { readonly add: (episodes: number) => void; readonly end: () => void } {
  let finished = 0;
  const handle = reporter.progress(
    () => [
      { text: label, priority: 4 },
      ...fractionFields(finished / total),
      { text: `episode ${formatCount(finished)}/${formatCount(total)}`, priority: 1 },
    ],
    { isTransient: true },
  );
  const add = (episodes: number): void => {
    finished += episodes;
    handle.update();
  };
  return { add, end: handle.end };
}
