import { hostname } from "node:os";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { JsonObject } from "../../files/index.js";
import type { RunOutcome } from "../tracker.js";
import { FilesItem_FileType } from "./record_pb.js";
import { mergedRow, type HistoryRow } from "./rows.js";
import type { KeptRun, Mark, RunFile } from "./run-file.js";
import type { WandbSettings } from "./settings.js";

/** Says in W&B's records what happens in a run. */
export class RunWriter {
  /** The last row, and where it begins. */
  private last: { readonly row: HistoryRow; readonly start: Mark } | undefined;

  /** `kept` is what a file that goes on held before. */
  constructor(
    private readonly file: RunFile,
    kept?: KeptRun,
  ) {
    const row = kept?.rows.at(-1);
    if (kept !== undefined && row !== undefined) this.last = { row, start: kept.lastRow };
  }

  /** The records that a file begins with. `startMs` is in milliseconds since 1970. */
  begin(runId: string, { project, entity, name, group, tags }: WandbSettings, startMs: number): void {
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

  config(settings: JsonObject): void {
    const update = Object.entries(settings).map(([key, value]) => ({ key, valueJson: JSON.stringify(value) }));
    this.file.write({ case: "config", value: { update } });
  }

  /** A row of the history; the run's summary holds the newest value of each key. A second row of a step joins the first. */
  row(added: HistoryRow): void {
    const row = this.last?.row.step === added.step ? mergedRow(this.last.row, added) : added;
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
  end(outcome: RunOutcome, runtime: number): void {
    if (this.file.closed) return;
    const exitCode = outcome === "finished" ? 0 : 1;
    this.file.write({ case: "exit", value: { exitCode, runtime: Math.round(runtime) } });
    this.file.close();
  }
}
