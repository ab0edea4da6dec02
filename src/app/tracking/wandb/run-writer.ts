import { hostname } from "node:os";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { JsonObject } from "../../../core/json.js";
import type { RunOutcome } from "../../../rl/tracking/index.js";
import { FilesItem_FileType } from "./record_pb.js";
import { mergeRows, type HistoryRow } from "./history-rows.js";
import type { StoredRun, FileMark, RunFile } from "./run-file.js";
import type { WandbConfig } from "./wandb-config.js";

/** Writes the events of a run as W&B records. */
export class RunWriter {
  /** The last row and its start. */
  private last: { readonly row: HistoryRow; readonly start: FileMark } | undefined;

  /** `stored` is the previous content of a resumed file. */
  constructor(
    private readonly file: RunFile,
    stored?: StoredRun,
  ) {
    const row = stored?.rows.at(-1);
    if (stored !== undefined && row !== undefined) this.last = { row, start: stored.lastRow };
  }

  /** Writes the first records of a file. `startMs` is in milliseconds since 1970. */
  writeStart(runId: string, { project, entity, name, group, tags, sweepId }: WandbConfig, startMs: number): void {
    // Older W&B clients do not support these records.
    this.file.write({ case: "header", value: { versionInfo: { producer: "llamagym", minConsumer: "0.15.0" } } });
    this.file.write({
      case: "run",
      value: {
        runId,
        project,
        entity,
        displayName: name,
        runGroup: group,
        tags: [...tags],
        sweepId,
        host: hostname(),
        startTime: timestampFromMs(startMs),
      },
    });
  }

  writeConfig(settings: JsonObject): void {
    const update = Object.entries(settings).map(([key, value]) => ({ key, valueJson: JSON.stringify(value) }));
    this.file.write({ case: "config", value: { update } });
  }

  /**
   * Writes a history row and updates the run's summary. A second row of a step is merged into the
   * first.
   */
  writeRow(added: HistoryRow): void {
    const row = this.last?.row.step === added.step ? mergeRows(this.last.row, added) : added;
    if (this.last !== undefined && row !== added) this.file.rewind(this.last.start);
    this.last = { row, start: this.file.end };
    const items = row.cells.map(([key, valueJson]) => ({ nestedKey: [key], valueJson }));
    if (row.files.length > 0) {
      const files = row.files.map((path) => ({ path, type: FilesItem_FileType.MEDIA }));
      this.file.write({ case: "files", value: { files } });
    }
    this.file.write({ case: "summary", value: { update: items } });
    this.file.write({ case: "history", value: { item: items, step: { num: BigInt(row.step) } } });
  }

  /** Writes the exit record. `runtime` is in seconds. */
  finish(outcome: RunOutcome, runtime: number): void {
    if (this.file.closed) return;
    const exitCode = outcome === "finished" ? 0 : 1;
    this.file.write({ case: "exit", value: { exitCode, runtime: Math.round(runtime) } });
    this.file.close();
  }
}
