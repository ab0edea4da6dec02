/**
 * Chat template of models without one: a transcript in which completions follow ">". New turns
 * leave earlier ones unchanged.
 */
export const FALLBACK_CHAT_TEMPLATE =
  "{% for message in messages %}{% if message.role == 'assistant' %}>{% endif %}{{ message.content }}{{ '\\n\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}>{% endif %}";
