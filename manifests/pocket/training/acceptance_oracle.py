"""How often the MTP head's token would be accepted, under five rules, on text that Pocket sampled itself."""
import torch
import torch.nn.functional as F

TEMPERATURE, TOP_P, TOP_K = 1.0, 0.95, 20
TEXTS, TOKENS = 32, 96
PROMPTS = ("raw", "chat", "needle_short")
RAW_TOKENS = 256  # of the prompt raw are used


def truncated(logits):
    """The distribution after temperature, top_k and top_p."""
    values, order = (logits / TEMPERATURE).sort(-1, descending=True)
    keep = torch.zeros_like(values, dtype=torch.bool)
    keep[..., :TOP_K] = True
    p = torch.softmax(torch.where(keep, values, -torch.inf), -1)
    before = p.cumsum(-1) - p
    keep &= before < TOP_P
    p = torch.where(keep, p, 0.0)
    p /= p.sum(-1, keepdim=True)
    return torch.zeros_like(values).scatter(-1, order, p)


def pad(rows):
    return F.pad(rows, (0, (rows.shape[1] + 63) // 64 * 64 - rows.shape[1]))


def sample(net, ids):
    """TEXTS continuations [TEXTS, len(ids)+TOKENS] of ids."""
    rows = torch.tensor([ids] * TEXTS).cuda()
    for _ in range(TOKENS):
        hidden = net(pad(rows))[0][:, rows.shape[1] - 1]
        rows = torch.cat([rows, torch.multinomial(truncated(net.logits(hidden)), 1)], 1)
    return rows


def acceptance(net, rows, prompt_tokens, end_id):
    """The result of every rule: means over the tokens before the end."""
    length = rows.shape[1]
    x = pad(rows)
    hidden, _, cos, sin = net(x)
    following = net.model.embed_tokens(F.pad(x[:, 1:], (0, 1)))
    mtp_logits = net.logits(net.mtp(following, hidden, cos, sin))
    # Both predict the tokens prompt_tokens+1 to length-1.
    target = net.logits(hidden)[:, prompt_tokens : length - 1]
    draft = mtp_logits[:, prompt_tokens - 1 : length - 2]
    alive = (rows[:, prompt_tokens : length - 1] == end_id).cumsum(1) == 0

    def mean(a):
        return float((a * alive).sum() / alive.sum())

    p_cut, q_cut = truncated(target), truncated(draft)
    p_full, q_full = torch.softmax(target / TEMPERATURE, -1), torch.softmax(draft / TEMPERATURE, -1)
    return dict(
        tokens=int(alive.sum()),
        greedy_match=mean((target.argmax(-1) == draft.argmax(-1)).float()),
        independent_samples=mean((p_cut * q_cut).sum(-1)),
        rejection_mismatched=mean(torch.minimum(p_full, q_cut).sum(-1)),
        rejection_matched=mean(torch.minimum(p_cut, q_cut).sum(-1)),
        rejection_untruncated=mean(torch.minimum(p_full, q_full).sum(-1)),
    )


@torch.no_grad()
def run(oracle, net, prompts, tag):
    torch.manual_seed(7)
    results = {}
    for name in PROMPTS:
        ids = oracle.ids_of(prompts[name])
        ids = ids[:RAW_TOKENS] if name == "raw" else ids
        results[name] = acceptance(net, sample(net, ids), len(ids), oracle.end_ids[0])
        print("acceptance", tag, name, results[name], flush=True)
    document = dict(temperature=TEMPERATURE, top_p=TOP_P, top_k=TOP_K, results=results)
    oracle.write(f"acceptance-{tag}", document)
