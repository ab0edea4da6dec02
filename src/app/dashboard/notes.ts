import { join } from "node:path";
import { z } from "zod";
import { errorMessage } from "../../core/errors.js";
import { writeJson } from "../../core/files/json-file.js";
import type { NotesRequest } from "./api.js";
import type { RunsFolder } from "./run-files.js";

export const NOTES_FILE = "notes.json";

/** Tags and a note of a run: 50 tags of 100 characters, and a note of 20,000. */
export const notesSchema = z.object({
  tags: z.array(z.string().trim().min(1).max(100)).max(50),
  note: z.string().max(20_000),
}) satisfies z.ZodType<NotesRequest>;

interface Notes extends NotesRequest {
  readonly problem?: string;
}

export const NO_NOTES: Notes = { tags: [], note: "" };

/** Reads the tags and the note in a run folder. */
export async function readNotes(runs: RunsFolder, id: string): Promise<Notes> {
  try {
    const saved = await runs.readJson(id, NOTES_FILE);
    if (saved === undefined) return NO_NOTES;
    return notesSchema.safeParse(saved).data ?? { ...NO_NOTES, problem: `${NOTES_FILE} has another form.` };
  } catch (error) {
    return { ...NO_NOTES, problem: errorMessage(error) };
  }
}

/** Writes the tags and the note into the run folder. @throws FILE_NOT_FOUND, FILE_WRITE_FAILED */
export async function writeNotes(runs: RunsFolder, id: string, { tags, note }: NotesRequest): Promise<void> {
  await writeJson(join(await runs.folder(id), NOTES_FILE), { version: 1, tags: [...new Set(tags)], note });
}
