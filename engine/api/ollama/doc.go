// Package ollama is enough of Ollama's wire for clients that know no other: chat, the list of models, what a model can
// and the version. It manages no models: there is the one that the server was started with.
//
// Nobody is to take the server for Ollama: "/" does not say so, and GET /health names slipway.
//
// # What is read as what
//
// A model may be named with ":latest". Messages hold text; images are refused. think turns thinking on or off, or
// names an effort; without it the model does as it does by itself. A chat without messages answers that the model is
// loaded. A last message of the assistant is continued. options.num_predict bounds the reply, below 0 nothing does;
// without it the model's window does.
//
// # What is refused, what is ignored
//
// Refused by name: format, mirostat, typical_p and tfs_z other than their neutral values, repeat_last_n, log
// probabilities, and every member and option that is not known. Ignored, because the reply would be the same with and
// without: keep_alive (the model stays), num_ctx (the window is the server's; what does not fit is refused), truncate
// and shift, and options about the machine (num_gpu, num_thread, use_mmap, ...).
//
// # Streams
//
// A stream is a line of JSON for each step, the last with done true; calls come whole. stream is true unless it is
// false. While nothing comes, a line without content is sent.
package ollama
