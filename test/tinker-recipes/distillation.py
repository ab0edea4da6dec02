"""Distills a teacher on the student's own samples, with the SDK alone: distillation.py MODEL TEACHER. Prints the student's divergence
from the teacher, in nats for each token, before each step."""
import json, sys
import tinker
from tinker import types

model, path = sys.argv[1:]
service = tinker.ServiceClient()
teacher = service.create_sampling_client(model_path=path)
student = service.create_lora_training_client(base_model=model, rank=16, seed=2).result()
prompt = student.get_tokenizer().encode("User: What is 4 + 5?\n\nAssistant: 9\n\nUser: What is 20 + 30?\n\nAssistant:", add_special_tokens=False)
divergences = []
for step in range(12):
    sampler = student.save_weights_and_get_sampling_client()
    sequences = sampler.sample(types.ModelInput.from_ints(prompt), 32, types.SamplingParams(max_tokens=8, seed=step)).result().sequences
    full = [prompt + list(each.tokens) for each in sequences]
    scored = [teacher.compute_logprobs(types.ModelInput.from_ints(tokens)) for tokens in full]
    differences = [[a - b for a, b in zip(each.logprobs, future.result()[len(prompt) :])] for each, future in zip(sequences, scored)]
    mean = sum(map(sum, differences)) / sum(map(len, differences))
    data, zeros = [], [0.0] * (len(prompt) - 1)
    for each, tokens, difference in zip(sequences, full, differences):
        inputs = {"target_tokens": tokens[1:], "logprobs": zeros + list(each.logprobs), "advantages": zeros + [mean - value for value in difference]}
        data.append(types.Datum(model_input=types.ModelInput.from_ints(tokens[:-1]), loss_fn_inputs=inputs))
    student.forward_backward(data, "importance_sampling")
    student.optim_step(types.AdamParams(learning_rate=3e-4)).result()
    divergences.append(mean)
print(json.dumps(divergences))
