import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { KubeconfigError, kubeconfigAccess, loadKubeconfig } from '@keelson/client';
import { type AnyOption, flagsHelp, mergeValues, parseArguments, UsageError } from '@keelson/core/internal';
import { path } from '../config/option-types.ts';
import { encryptionPath, rotationPath } from '../server/encryption-endpoint.ts';
import { kubeconfigFile } from '../tls/kubeconfig.ts';

const table: readonly AnyOption[] = [
  {
    name: 'kubeconfig',
    flag: '--kubeconfig',
    type: path('FILE'),
    default: undefined,
    shownDefault: 'that of the server in --data',
    help: 'client config of an administrator of the server',
  },
  {
    name: 'data',
    flag: '--data',
    variable: 'KEELSON_DATA',
    type: path('DIR'),
    default: '.keelson',
    help: 'data directory of the server',
  },
];

const pollMs = 1_000;
const timeoutMs = 600_000;

interface Report {
  readonly stores: readonly {
    readonly store: string;
    readonly resources: readonly {
      readonly resource: string;
      readonly writesWith: string;
      readonly objects: Readonly<Record<string, number>>;
    }[];
  }[];
}

interface Rotations {
  readonly stores: readonly {
    readonly store: string;
    readonly state: 'running' | 'done' | 'failed';
    readonly passed: number;
    readonly total: number;
    readonly rewritten: number;
    readonly unreadable: number;
    readonly error?: string;
  }[];
}

/**
 * `keelson encrypt status` prints how the objects of a running server are stored; `keelson encrypt rotate` rewrites
 * those that are not stored with the first provider of their resource, and prints the progress. False when the rotation
 * failed, or an object cannot be decrypted.
 *
 * @throws UsageError
 */
export async function encrypt(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  print: (text: string) => void,
): Promise<boolean> {
  const [action, ...rest] = args;
  const isHelp = action === '--help' || action === '-h';
  const { given, help } = parseArguments(isHelp ? ['--help'] : rest, table, 'keelson encrypt');
  if (help) {
    print(`keelson encrypt status|rotate [options]   report about or rewrite encrypted objects\n\n${flagsHelp(table)}`);
    return true;
  }
  if (action !== 'status' && action !== 'rotate')
    throw new UsageError('keelson encrypt requires an action: keelson encrypt status, or keelson encrypt rotate');
  const defaults = new Map(env['KEELSON_DATA'] === undefined ? [] : [['data', env['KEELSON_DATA']]]);
  const values = mergeValues(table, given, defaults) as { readonly kubeconfig?: string; readonly data: string };
  const call = await callServer(values.kubeconfig ?? join(values.data, kubeconfigFile));
  return action === 'status' ? printStatus(call, print) : rotate(call, print);
}

type Call = <T>(method: 'GET' | 'POST', path: string) => Promise<T>;

async function printStatus(call: Call, print: (text: string) => void): Promise<boolean> {
  for (const { store, resources } of (await call<Report>('GET', encryptionPath)).stores) {
    print(`store ${store}${resources.length === 0 ? ': no object of an encrypted resource' : ''}\n`);
    for (const { resource, writesWith, objects } of resources) {
      const counts = Object.entries(objects).map(([key, count]) => `${count} with ${key}`);
      const stale = Object.keys(objects).some((key) => key !== writesWith);
      print(`  ${resource}: writes with ${writesWith}; ${counts.join(', ')}${stale ? '; rotation required' : ''}\n`);
    }
  }
  return true;
}

async function rotate(call: Call, print: (text: string) => void): Promise<boolean> {
  let { stores } = await call<Rotations>('POST', rotationPath);
  for (;;) {
    for (const { store, passed, total, rewritten } of stores)
      print(`store ${store}: ${passed} of ${Math.max(passed, total)} objects checked, ${rewritten} rewritten\n`);
    if (stores.every(({ state }) => state !== 'running')) break;
    // Not injected: the command waits for another process, which takes real time.
    await new Promise((resolve) => setTimeout(resolve, pollMs));
    ({ stores } = await call<Rotations>('GET', rotationPath));
  }
  for (const { store, unreadable, error } of stores) {
    if (error !== undefined) print(`store ${store}: the rotation failed: ${error}; start it again to continue\n`);
    if (unreadable > 0) print(`store ${store}: ${unreadable} objects cannot be decrypted and were left as they are\n`);
  }
  return stores.every(({ state, unreadable }) => state === 'done' && unreadable === 0);
}

/** Calls a server with the credentials of a kubeconfig. @throws UsageError */
async function callServer(config: string): Promise<Call> {
  const { options } = await loadKubeconfig({ path: config })
    .then((loaded) => kubeconfigAccess(loaded))
    .catch((error: unknown) => {
      if (error instanceof KubeconfigError) throw new UsageError(`${error.message}; use --kubeconfig or --data`);
      throw error;
    });
  const bearer = options.tokenProvider === undefined ? options.token : await options.tokenProvider();
  const tls = { ca: options.ca, cert: options.clientCertificate, key: options.clientKey };
  return <T>(method: 'GET' | 'POST', target: string) =>
    new Promise<T>((resolve, reject) => {
      const url = options.server.replace(/\/$/, '') + target;
      const outgoing = (url.startsWith('https:') ? httpsRequest : httpRequest)(
        url,
        {
          method,
          ...tls,
          signal: AbortSignal.timeout(timeoutMs),
          headers: bearer === undefined ? {} : { Authorization: `Bearer ${bearer}` },
        },
        (incoming) => {
          const chunks: Buffer[] = [];
          incoming.on('error', reject);
          incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
          incoming.on('end', () => {
            const body = Buffer.concat(chunks).toString();
            const status = incoming.statusCode ?? 0;
            if (status === 404) reject(new Error(`${options.server} was started without --encryption-provider-config`));
            else if (status >= 300)
              reject(new Error(`${url} answered with the status ${status}: ${body.slice(0, 500)}`));
            else resolve(JSON.parse(body) as T);
          });
        },
      );
      outgoing.on('error', (error) => reject(new Error(`${options.server} cannot be reached: ${error.message}`)));
      outgoing.end();
    });
}
