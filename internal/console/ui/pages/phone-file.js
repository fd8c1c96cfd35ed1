// Files that a request to the sandbox holds itself.

export const largest = 700_000; // bytes; in base64 it must fit into a request of 1 MiB

export const base64 = (file) => new Promise((done, fail) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result.split(',')[1]);
  reader.onerror = () => fail(reader.error);
  reader.readAsDataURL(file);
});
