import { X509Certificate } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { mergeValues, type Option, parseArguments, UsageError } from '@keelson/core/internal';
import { systemClock } from '@keelson/core/runtime';
import { path } from '../config/option-types.ts';

const dataOption: Option<'data', string> = {
  name: 'data',
  flag: '--data',
  type: path('DIR'),
  default: '.keelson',
  help: 'data directory of the server',
};

const purposes: Readonly<Record<string, string>> = {
  ca: 'authority of clients, servers and nodes',
  server: 'serving',
  admin: 'client: administrator',
  'agent-client': 'client: this server to node agents',
  bootstrap: 'client: joining nodes',
};

const dayMs = 86_400_000;
const oneLine = (name: string): string => name.split('\n').reverse().join(', ');

/** The certificates of a file, one line each. */
async function describe(file: string, name: string, now: number): Promise<string[]> {
  const blocks = (await readFile(file, 'latin1')).match(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs);
  return (blocks ?? []).map((block, at) => {
    const certificate = new X509Certificate(block);
    const end = Date.parse(certificate.validTo);
    const left = end <= now ? 'expired' : `${Math.floor((end - now) / dayMs)} days left`;
    return [
      at === 0 ? name : `${name} (former)`,
      oneLine(certificate.subject),
      certificate.subjectAltName ?? '-',
      oneLine(certificate.issuer),
      `${new Date(end).toISOString().slice(0, 19)}Z (${left})`,
      purposes[name] ?? '-',
    ].join('\t');
  });
}

/** `keelson cert list`: the certificates of a data directory, tab-separated below a heading. @throws UsageError */
export async function certificatesCommand(words: readonly string[], print: (text: string) => void): Promise<void> {
  const [action, ...rest] = words;
  if (action !== 'list')
    throw new UsageError(`unknown command ${JSON.stringify(`cert ${action ?? ''}`)}; use cert list`);
  const { given } = parseArguments(rest, [dataOption], 'keelson');
  const { data } = mergeValues([dataOption], given) as { readonly data: string };
  const files = await readdir(data).catch((error: Error) => {
    throw new UsageError(`--data ${data} cannot be read: ${error.message}`);
  });
  const names = files.filter((file) => file.endsWith('.crt')).map((file) => file.slice(0, -4));
  if (names.length === 0) throw new UsageError(`--data ${data} contains no certificate; start the server once`);
  print('NAME\tSUBJECT\tNAMES\tISSUER\tEXPIRES\tUSED FOR\n');
  const order = Object.keys(purposes);
  const rank = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length);
  for (const name of names.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1)))
    for (const line of await describe(join(data, `${name}.crt`), name, systemClock.now())) print(`${line}\n`);
}
