import type { DownloadProgress } from "../../../models/files/index.js";
import { fractionFields, type ProgressField } from "../../tracking/progress/progress-fields.js";
import type { Reporter } from "../reporter.js";
import { formatBytes } from "../../../core/format.js";

/** Shows the progress of downloads, all files together, until `end` is called. */
export function reportDownloads(reporter: Reporter): {
  readonly update: (progress: DownloadProgress) => void;
  readonly end: () => void;
} {
  const files = new Map<string, DownloadProgress>();
  const startTime = performance.now();
  const handle = reporter.progress(() => downloadFields([...files.values()], (performance.now() - startTime) / 1000), {
    isTransient: true,
  });
  const update = (progress: DownloadProgress): void => {
    const previous = files.get(progress.file);
    files.set(progress.file, progress);
    handle.update();
    const wasComplete = previous !== undefined && isComplete(previous);
    if (!reporter.isInteractive && isComplete(progress) && !wasComplete)
      reporter.info(`Downloaded ${progress.file} (${formatBytes(progress.totalBytes)})`);
  };
  return { update, end: handle.end };
}

const isComplete = ({ loadedBytes, totalBytes }: DownloadProgress) => loadedBytes >= totalBytes;

function downloadFields(files: readonly DownloadProgress[], seconds: number): readonly ProgressField[] {
  const loaded = files.reduce((sum, { loadedBytes }) => sum + loadedBytes, 0);
  const total = files.reduce((sum, { totalBytes }) => sum + totalBytes, 0);
  const pending = files.filter((file) => !isComplete(file)).map(({ file }) => file);
  return [
    ...fractionFields(total === 0 ? 1 : loaded / total),
    { text: `${formatBytes(loaded)} of ${formatBytes(total)}`, priority: 1 },
    { text: `${formatBytes(loaded / Math.max(0.001, seconds))}/s`, priority: 2 },
    ...(pending.length > 0 ? [{ text: pending.join(", "), priority: 6 }] : []),
  ];
}
