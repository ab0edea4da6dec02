import { create, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { ValueSchema, type Value as JsonProto } from "@bufbuild/protobuf/wkt";
import type { JsonObject, JsonValue } from "../../../core/json.js";
import { isJsonObject } from "../../../core/json.js";
import type { MetricRecord, RunOutcome, CompletionRow } from "../tracker.js";
import { DataClass, DataType, HParamsPluginDataSchema, SessionEndInfo_Status, type SummarySchema } from "./event_pb.js";

type SummaryInit = MessageInitShape<typeof SummarySchema>;

const utf8 = new TextEncoder();

/**
 * Creates a scalar per number; TensorBoard groups names by the part before the first slash. Numbers
 * beyond float32 are infinite, as in TensorBoard's writer.
 */
export function createScalarSummary(record: MetricRecord): SummaryInit {
  return { value: Object.entries(record).map(([tag, value]) => ({ tag, simpleValue: Math.fround(value) })) };
}

/** Creates a text table with one row per completion. */
export function createCompletionTable(tag: string, rows: readonly CompletionRow[]): SummaryInit {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cells = rows.flatMap((row) => columns.map((column) => formatCell(row[column])));
  return createTextTensor(
    tag,
    [rows.length + 1, columns.length],
    [...columns.map((column) => `**${column}**`), ...cells],
  );
}

/** Creates a text, which TensorBoard renders as Markdown. */
export function createTextSummary(tag: string, markdown: string): SummaryInit {
  return createTextTensor(tag, [], [markdown]);
}

function createTextTensor(tag: string, shape: readonly number[], strings: readonly string[]): SummaryInit {
  return {
    value: [
      {
        tag,
        tensor: {
          dtype: DataType.DT_STRING,
          tensorShape: { dim: shape.map((size) => ({ size: BigInt(size) })) },
          stringVal: strings.map((string) => utf8.encode(string)),
        },
        metadata: { pluginData: { pluginName: "text" }, dataClass: DataClass.TENSOR },
      },
    ],
  };
}

/** Quotes a text verbatim: its code fence is longer than any fence inside it. */
export function fenceCode(content: string, language = ""): string {
  const longestFence = Math.max(2, ...[...content.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longestFence + 1);
  return `${fence}${language}\n${content}\n${fence}`;
}

function formatCell(value: CompletionRow[string]): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? fenceCode(value) : String(value);
}

/** Creates the HPARAMS entry of a run's settings: a flat list, nested names joined by dots. */
export function createSessionStart(settings: JsonObject, seconds: number): SummaryInit {
  const hparams = Object.fromEntries(flattenSettings(settings, ""));
  return createHparamsSummary("_hparams_/session_start_info", {
    sessionStartInfo: { hparams, startTimeSecs: seconds },
  });
}

export function createSessionEnd(outcome: RunOutcome, seconds: number): SummaryInit {
  const status = outcome === "finished" ? SessionEndInfo_Status.SUCCESS : SessionEndInfo_Status.FAILURE;
  return createHparamsSummary("_hparams_/session_end_info", { sessionEndInfo: { status, endTimeSecs: seconds } });
}

function createHparamsSummary(tag: string, data: MessageInitShape<typeof HParamsPluginDataSchema>): SummaryInit {
  const content = toBinary(HParamsPluginDataSchema, create(HParamsPluginDataSchema, data));
  return {
    value: [
      {
        tag,
        // The plugin reads only the metadata; TensorBoard also writes an empty list as the value.
        tensor: { dtype: DataType.DT_FLOAT, tensorShape: { dim: [{ size: 0n }] } },
        metadata: { pluginData: { pluginName: "hparams", content }, dataClass: DataClass.TENSOR },
      },
    ],
  };
}

function flattenSettings(settings: JsonObject, prefix: string): [string, JsonProto][] {
  return Object.entries(settings).flatMap(([name, value]): [string, JsonProto][] => {
    if (value === null) return [];
    return isJsonObject(value)
      ? flattenSettings(value, `${prefix}${name}.`)
      : [[`${prefix}${name}`, toProtoValue(value)]];
  });
}

/** Converts a value to a type of the plugin (number, string, boolean); lists become JSON. */
function toProtoValue(value: Exclude<JsonValue, null | JsonObject>): JsonProto {
  if (typeof value === "number") return create(ValueSchema, { kind: { case: "numberValue", value } });
  if (typeof value === "boolean") return create(ValueSchema, { kind: { case: "boolValue", value } });
  const content = typeof value === "string" ? value : JSON.stringify(value);
  return create(ValueSchema, { kind: { case: "stringValue", value: content } });
}
