import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { bootstrapTokenEnd, bootstrapTokens } from '@keelson/access';
import { createHttpClient, kubeconfigAccess, loadKubeconfig } from '@keelson/client';
import { formatTime, isStatusError, type ResourceClient, StatusReason } from '@keelson/core';
import { duration, mergeValues, type Option, parseArguments, text, UsageError } from '@keelson/core/internal';
import { systemClock } from '@keelson/core/runtime';
import { Secret } from '@keelson/kinds';
import { writePrivateFile } from '../base/private-file.ts';
import { path } from '../config/option-types.ts';
import { kubeconfigFile, userKubeconfig } from '../tls/kubeconfig.ts';

const dataOption: Option<'data', string> = {
  name: 'data',
  flag: '--data',
  type: path('DIR'),
  default: '.keelson',
  help: 'data directory of the server; its kubeconfig is used to reach the running server',
};

const createTable = [
  dataOption,
  { name: 'ttl', flag: '--ttl', type: duration, default: 86_400_000, help: 'validity of the token; 0 for no end' },
  { name: 'description', flag: '--description', type: text, default: '', help: 'purpose of the token' },
] as const;

const characters = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** Characters of a bootstrap token from the random generator of the system. */
function randomCharacters(count: number): string {
  return Array.from({ length: count }, () => characters[randomInt(characters.length)]).join('');
}

async function connect(data: string) {
  const file = join(data, kubeconfigFile);
  const { options } = await loadKubeconfig({ path: file })
    .then((config) => kubeconfigAccess(config))
    .catch((error: Error) => {
      throw new UsageError(`--data ${data}: ${error.message}; start the server first or name its data directory`);
    });
  const client = createHttpClient(options);
  return { server: options, secrets: client.resource(Secret).namespace(bootstrapTokens.namespace), client };
}

const base64 = (value: string): string => Buffer.from(value, 'utf8').toString('base64');

async function create(words: readonly string[], print: (text: string) => void): Promise<void> {
  const { given } = parseArguments(words, createTable, 'keelson');
  const { data, ttl, description } = mergeValues(createTable, given) as {
    readonly data: string;
    readonly ttl: number;
    readonly description: string;
  };
  if (ttl < 0) throw new UsageError('--ttl must not be negative');
  const { server, secrets, client } = await connect(data);
  if (server.ca === undefined)
    throw new UsageError('the server runs with --insecure: it has no authentication, and nodes join without a token');
  const [id, secret] = [randomCharacters(6), randomCharacters(16)];
  const fields = {
    'token-id': id,
    'token-secret': secret,
    'usage-bootstrap-authentication': 'true',
    ...(ttl === 0 ? {} : { expiration: formatTime(new Date(systemClock.now() + ttl)) }),
    ...(description === '' ? {} : { description }),
  };
  try {
    await secrets.create({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: `${bootstrapTokens.namePrefix}${id}`, namespace: bootstrapTokens.namespace },
      type: bootstrapTokens.type,
      data: Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, base64(value)])),
    } as Secret);
  } finally {
    client.close();
  }
  const file = join(data, `bootstrap-${id}.kubeconfig`);
  const authority = String(server.ca);
  await writePrivateFile(
    file,
    userKubeconfig({ url: server.server, authority, name: 'bootstrap', token: `${id}.${secret}` }),
  );
  print(`${id}.${secret}\n\nCopy ${file} to the machine of the node and start the agent there:\n\n`);
  print(`  keelson-agent --bootstrap-clusterconfig=./bootstrap-${id}.kubeconfig \\\n`);
  print('    --clusterconfig=/var/lib/keelson-agent/clusterconfig --rotate-certificates\n');
}

async function list(secrets: ResourceClient<Secret>, print: (text: string) => void): Promise<void> {
  const { items } = await secrets.list({ fieldSelector: `type=${bootstrapTokens.type}` });
  const now = systemClock.now();
  print(`${'ID'.padEnd(8)}${'EXPIRES'.padEnd(22)}DESCRIPTION\n`);
  for (const secret of items) {
    const id = (secret.metadata?.name ?? '').slice(bootstrapTokens.namePrefix.length);
    const end = bootstrapTokenEnd(secret);
    const shown = !Number.isFinite(end) ? 'never' : end <= now ? 'expired' : formatTime(new Date(end));
    const description = Buffer.from(secret.data?.['description'] ?? '', 'base64').toString('utf8');
    print(`${id.padEnd(8)}${shown.padEnd(22)}${description}\n`);
  }
}

/** `keelson token create | list | delete`: bootstrap tokens of nodes on a running server. @throws UsageError */
export async function tokenCommand(words: readonly string[], print: (text: string) => void): Promise<void> {
  const [action, ...rest] = words;
  if (action === 'create') return create(rest, print);
  if (action !== 'list' && action !== 'delete')
    throw new UsageError(
      `unknown command ${JSON.stringify(`token ${action ?? ''}`)}; use token create, list or delete`,
    );
  const [id = ''] = action === 'delete' ? rest.splice(0, 1) : [];
  if (action === 'delete' && !/^[a-z0-9]{6}(?:\.[a-z0-9]{16})?$/.test(id))
    throw new UsageError('keelson token delete requires the ID of a token, as printed by keelson token list');
  const { given } = parseArguments(rest, [dataOption], 'keelson');
  const { data } = mergeValues([dataOption], given) as { readonly data: string };
  const { secrets, client } = await connect(data);
  try {
    if (action === 'list') return await list(secrets, print);
    await secrets.delete(`${bootstrapTokens.namePrefix}${id.slice(0, 6)}`).catch((error: unknown) => {
      if (!isStatusError(error, StatusReason.NotFound)) throw error;
      throw new UsageError(`there is no token ${id.slice(0, 6)}`);
    });
    print(`deleted ${id.slice(0, 6)}\n`);
  } finally {
    client.close();
  }
}
