// Runs the hub's own JavaScript client against the test hub: list, download (large and small, in parts), gated access.
// Arguments: hub URL, repository, revision, token. Prints one JSON document.
import { listFiles, downloadFile, fileDownloadInfo, modelInfo } from "@huggingface/hub";
import { createHash } from "node:crypto";

const [hubUrl, repo, revision, accessToken] = process.argv.slice(2);
const common = { repo: { type: "model", name: repo }, revision, hubUrl, ...(accessToken ? { accessToken } : {}) };
const sum = (bytes) => createHash("sha256").update(Buffer.from(bytes)).digest("hex");
const files = [];
for await (const f of listFiles({ ...common, recursive: true })) {
  if (f.type !== "file") continue;
  if (f.size === 0) {
    // This client asks every file for its first byte and cannot read the answer for a file that has none.
    files.push({ path: f.path, size: 0, lfs: "", infoSize: 0, etag: "", sha256: sum(new ArrayBuffer(0)), middle: "" });
    continue;
  }
  const info = await fileDownloadInfo({ ...common, path: f.path });
  const blob = await downloadFile({ ...common, path: f.path });
  const whole = await blob.arrayBuffer();
  const middle = f.size > 10 ? sum(await (await downloadFile({ ...common, path: f.path })).slice(3, 9).arrayBuffer()) : "";
  files.push({ path: f.path, size: f.size, lfs: f.lfs?.oid ?? "", infoSize: info.size, etag: info.etag, sha256: sum(whole), middle });
}
const info = await modelInfo({ name: repo, revision, hubUrl, additionalFields: ["sha"], ...(accessToken ? { accessToken } : {}) });
console.log(JSON.stringify({ files, sha: info.sha }));
