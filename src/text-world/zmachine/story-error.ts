/** A story that does what the machine's standard forbids, or too much of what it allows. */
export class StoryError extends Error {
  override readonly name = "StoryError";
}
