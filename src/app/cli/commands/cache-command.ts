import { boolean } from "../../../core/settings.js";
import { formatBytes } from "../../../core/format.js";
import {
  clearCachedWeights,
  getMaxCacheBytes,
  listCachedWeights,
  type CachedWeightsInfo,
} from "../../../models/weights/index.js";
import { getCacheFolder } from "../../../core/files/cache-folder.js";
import { formatTable } from "../display/format-table.js";
import { defineCommand } from "../options/define-command.js";

export const cacheCommand = defineCommand({
  name: "cache",
  description:
    "Lists the converted weights that are kept between starts, or removes them: they are converted again when they are needed.",
  examples: [
    { description: "What is kept", args: "cache" },
    { description: "Remove everything that no running process uses", args: "cache --clear" },
  ],
  options: {
    clear: boolean({ description: "Remove the converted weights that no running process uses." }),
    json: boolean({ description: "Print one JSON object." }),
  },
  run: async ({ clear = false, json = false }, reporter) => {
    const removed = clear ? await clearCachedWeights() : [];
    const entries = await listCachedWeights();
    const [folder, maxBytes] = [getCacheFolder(), getMaxCacheBytes()];
    if (json) {
      reporter.print(JSON.stringify({ folder, maxBytes, entries, removed }));
      return 0;
    }
    const total = `${formatBytes(sumBytes(entries))} of at most ${formatBytes(maxBytes)} in ${folder}`;
    if (entries.length > 0) reporter.print(formatEntries(entries));
    reporter.print(clear ? `Removed ${formatBytes(sumBytes(removed))}. ${total} remain.` : `${total}.`);
    return 0;
  },
});

const sumBytes = (entries: readonly CachedWeightsInfo[]): number => entries.reduce((sum, { bytes }) => sum + bytes, 0);

function formatEntries(entries: readonly CachedWeightsInfo[]): string {
  const rows = entries.map(({ source = "damaged, or of another version", bits, bytes, usedMs, isInUse }) => [
    source,
    bits === undefined ? "" : String(bits),
    formatBytes(bytes),
    isInUse ? "in use" : new Date(usedMs).toISOString().slice(0, 16).replace("T", " "),
  ]);
  return formatTable([["MODEL", "BITS", "SIZE", "LAST USE"], ...rows], [1, 2]);
}
