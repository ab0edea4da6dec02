/**
 * How a conversation reads to a model without a chat template: a transcript in which replies stand behind ">". Earlier turns
 * stay as they were when new ones come.
 */
export const FALLBACK_CHAT_TEMPLATE =
  "{% for message in messages %}{% if message.role == 'assistant' %}>{% endif %}{{ message.content }}{{ '\\n\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}>{% endif %}";
