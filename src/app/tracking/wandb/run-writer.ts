import { hostname } from "node:os";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { JsonObject } from "../../../models/files/index.js";
import type { RunOutcome } from "../../../rl/tracking/tracker.js";
import { FilesItem_FileType } from "./record_pb.js";
import { mergeRows, type HistoryRow } from "./history-rows.js";
import type { StoredRun, FileMark, RunFile } from "./run-file.js";
import type { WandbConfig } from "./wandb-config.js";

/** Says in W&B's records what happens in a run. */
export class RunWriter {
  /** The last row, and where it begins. */
  private last: { readonly row: HistoryRow; readonly start: FileMark } | undefined;

  /** `kept` is what a file that goes on held before. */
  constructor(
    private readonly file: RunFile,
    stored?: StoredRun,
  ) {
    const row = stored?.rows.at(-1);
    if (stored !== undefined && row !== undefined) this.last = { row, start: stored.lastRow };
  }

  /** The records that a file begins with. `startMs` is in milliseconds since 1970. */
  writeStart(runId: string, { project, entity, name, group, tags }: WandbConfig, startMs: number): void {
    // A consumer older than this version of W&B's client does not know what is written here.
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
        host: hostname(),
        startTime: timestampFromMs(startMs),
      },
    });
  }

  writeConfig(settings: JsonObject): void {
    const update = Object.entries(settings).map(([key, value]) => ({ key, valueJson: JSON.stringify(value) }));
    this.file.write({ case: "config", value: { update } });
  }

  /** A row of the history; the run's summary holds the newest value of each key. A second row of a step joins the first. */
  row(added: HistoryRow): void {
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

  /** `runtime` is in seconds. */
  finish(outcome: RunOutcome, runtime: number): void {
    if (this.file.closed) return;
    const exitCode = outcome === "finished" ? 0 : 1;
    this.file.write({ case: "exit", value: { exitCode, runtime: Math.round(runtime) } });
    this.file.close();
  }
}
