"""What PyTorch's functions and methods give: tables, read by ``evaluate``."""

from __future__ import annotations

FACTORIES = frozenset(
    ("zeros", "ones", "empty", "full", "rand", "randn", "randint", "arange", "linspace", "logspace", "eye", "tensor",
     "as_tensor", "from_numpy", "randperm", "normal", "frombuffer", "tril_indices", "triu_indices", "range",
     "FloatTensor", "LongTensor", "Tensor", "IntTensor", "BoolTensor", "ByteTensor", "DoubleTensor", "hann_window",
     "hamming_window", "blackman_window", "kaiser_window", "bartlett_window", "from_file", "asarray", "scalar_tensor")
)  # fmt: skip
LIKE = frozenset(
    ("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like", "new_zeros",
     "new_ones", "new_empty", "new_full", "new_tensor", "new")
)  # fmt: skip
INTEGER = frozenset(
    ("arange", "randint", "randperm", "argmax", "argmin", "argsort", "long", "int", "bincount", "nonzero", "LongTensor",
     "count_nonzero", "searchsorted", "bucketize", "argwhere", "multinomial", "one_hot", "flatnonzero")
)  # fmt: skip
BOOLEAN = frozenset(
    ("isnan", "isfinite", "isinf", "eq", "ne", "gt", "lt", "ge", "le", "greater", "less", "logical_and", "logical_or",
     "logical_not", "logical_xor", "isclose", "isin", "bool", "signbit", "isposinf", "isneginf", "any", "all",
     "greater_equal", "less_equal", "not_equal", "BoolTensor")
)  # fmt: skip
HOST_BOOLS = frozenset(("equal", "allclose"))
"""Functions that give a Python bool, and so wait for the device."""
PLAIN = frozenset(
    ("size", "dim", "ndimension", "numel", "nelement", "is_floating_point", "is_contiguous", "is_complex", "data_ptr",
     "get_device", "element_size", "stride", "storage_offset", "is_tensor", "is_grad_enabled", "is_autocast_enabled",
     "get_default_dtype", "is_storage", "initial_seed", "seed", "get_num_threads", "typename", "is_inference",
     "is_same_size", "get_rng_state", "is_pinned", "is_shared", "is_set_to", "is_inference_mode_enabled")
)  # fmt: skip
"""What Python knows of a tensor without looking at its elements."""
LISTS = frozenset(
    (
        "split",
        "chunk",
        "unbind",
        "tensor_split",
        "split_with_sizes",
        "broadcast_tensors",
        "meshgrid",
        "hsplit",
        "vsplit",
    )
)
PAIRS = frozenset(("topk", "sort", "kthvalue", "mode", "cummax", "cummin", "std_mean", "var_mean", "slogdet"))
PAIR_WITH_DIM = frozenset(("max", "min", "median", "nanmedian"))
REDUCTIONS = frozenset(
    ("sum", "mean", "max", "min", "any", "all", "norm", "prod", "std", "var", "argmax", "argmin", "median",
     "count_nonzero", "nansum", "nanmean", "amax", "amin", "cross_entropy", "mse_loss", "l1_loss", "nll_loss",
     "binary_cross_entropy", "binary_cross_entropy_with_logits", "smooth_l1_loss", "kl_div", "clip_grad_norm_")
)  # fmt: skip
"""Without a dimension they give a tensor of none."""
FLOATS = frozenset(("float", "half", "bfloat16", "softmax", "sigmoid", "log_softmax", "mean", "exp", "log", "div"))
ONLY_TENSORS = frozenset(
    ("backward", "cuda", "detach", "requires_grad_", "unsqueeze", "unsqueeze_", "expand", "expand_as", "permute",
     "contiguous", "view_as", "masked_fill", "masked_fill_", "masked_select", "masked_scatter", "masked_scatter_",
     "scatter_", "scatter", "scatter_add_", "index_select", "index_add_", "index_copy_", "softmax", "log_softmax",
     "sigmoid", "bmm", "addmm", "grad_fn", "grad", "retain_grad", "is_cuda", "long", "float", "double", "half",
     "bfloat16", "type_as", "topk", "baddbmm", "clamp_", "narrow", "repeat_interleave", "new_zeros", "new_ones",
     "new_tensor", "new_full", "new_empty", "zero_", "fill_", "uniform_", "normal_", "mul_", "add_", "sub_", "div_",
     "copy_", "clamp_min", "clamp_max", "movedim", "matmul", "tril", "triu", "logsumexp", "record_stream", "numel",
     "requires_grad", "unbind", "isnan", "relu", "bernoulli_", "exp_", "gather", "nelement", "to_sparse", "cpu", "bool",
     "nansum", "unfold", "amax", "amin", "count_nonzero", "logcumsumexp", "lgamma", "digamma", "hypot", "exp2", "norm")
)  # fmt: skip
"""Attributes that, of what programs hold, tensors alone have (a model, too, has some)."""
ARRAYS_OR_TENSORS = frozenset(
    ("shape", "ndim", "dtype", "sum", "mean", "any", "all", "nonzero", "reshape", "view", "size", "squeeze", "flatten",
     "argmax", "argmin", "argsort", "cumsum", "tolist", "clamp", "std", "median", "transpose", "clone", "abs")
)  # fmt: skip
"""Attributes of tensors and arrays: they show a tensor in a file that imports no library of arrays."""
TWO_TENSORS = frozenset(
    ("cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits", "matmul", "mm", "bmm", "kl_div",
     "linear", "conv1d", "conv2d", "conv3d", "scaled_dot_product_attention", "dot", "minimum", "maximum", "cdist",
     "cosine_similarity", "masked_select", "equal", "logical_and", "logical_or", "isclose", "allclose", "grid_sample")
)  # fmt: skip
"""Functions whose second argument is a tensor as well."""
ONLY_MODELS = frozenset(
    ("parameters", "named_parameters", "load_state_dict", "train", "eval", "modules", "named_modules", "children",
     "buffers", "apply", "named_children", "get_submodule")
)  # fmt: skip
MODEL_METHODS = frozenset(
    ("to", "cuda", "train", "eval", "half", "float", "cpu", "requires_grad_", "double", "bfloat16")
)
"""Methods of a module that give the module itself."""
OF_TENSORS = (
    ONLY_TENSORS
    | ARRAYS_OR_TENSORS
    | REDUCTIONS
    | BOOLEAN
    | INTEGER
    | LISTS
    | PAIRS
    | PLAIN
    | LIKE
    | FLOATS
    | HOST_BOOLS
) | {"item", "numpy", "to", "type", "get", "items", "keys", "values", "where", "pow", "sqrt", "mul", "add", "unique"}
"""Methods that may well be those of a tensor where it is not certain that there is one."""
TUPLE_LAYERS = frozenset(("LSTM", "GRU", "RNN", "MultiheadAttention", "LSTMCell"))
COMPUTES = ("torch.nn.functional.", "torch.linalg.", "torch.fft.", "torch.special.", "torchvision.ops.")
NOT_TENSORS = frozenset(
    ("device", "load", "save", "compile", "no_grad", "enable_grad", "inference_mode", "autocast", "set_grad_enabled",
     "manual_seed", "Generator", "Size", "set_default_dtype", "finfo", "iinfo", "set_num_threads", "set_printoptions",
     "use_deterministic_algorithms", "get_device_module", "set_default_device", "vmap", "promote_types", "result_type",
     "set_float32_matmul_precision", "set_default_tensor_type", "chunk", "is_deterministic", "broadcast_shapes",
     "Event",
     "Stream", "set_rng_state", "set_warn_always", "get_float32_matmul_precision", "can_cast", "typename")
)  # fmt: skip
NUMBERS = frozenset(
    (
        "len",
        "range",
        "id",
        "hash",
        "ord",
        "isinstance",
        "hasattr",
        "callable",
        "issubclass",
        "pow",
        "divmod",
        "any",
        "all",
    )
)
HOST_MODULES = ("math.", "random.", "time.", "os.", "statistics.", "datetime.", "operator.", "re.", "sys.")
