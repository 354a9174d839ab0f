import type { Etcd3AdapterOptions } from './adapter-options.ts';

const example = 'etcd://127.0.0.1:2379/keelson/';
const files = { ca: 'caFile', cert: 'certFile', key: 'keyFile' } as const;
const numbers = { minAgeMs: 'minAgeMs', minChanges: 'minChanges' } as const;

/**
 * `//[user:password@]host:port[,host:port...][/prefix][?ca=&cert=&key=&minAgeMs=&minChanges=&compaction=]`.
 *
 * @param url the part after `etcd:` or `etcds:`
 * @throws Error with a message for users
 */
export function parseUrl(url: string, tls: boolean): Etcd3AdapterOptions {
  const match = /^\/\/(?:([^@/?#]*)@)?([^@/?#]+)(\/[^?#]*)?(?:\?([^#]*))?$/.exec(url);
  if (match === null) throw new Error(`etcd: expected //host:port[,host:port...][/prefix], as in ${example}`);
  const [, account, hosts = '', path = '', query = ''] = match;
  const parameters = new URLSearchParams(query);
  const prefix = decoded(path, 'prefix');
  const history: Record<string, number> = {};
  const tlsFiles: Record<string, string> = {};
  let compaction: 'auto' | 'never' | undefined;
  for (const [name, value] of parameters) {
    if (name in files) tlsFiles[files[name as keyof typeof files]] = value;
    else if (name in numbers) history[name] = wholeNumber(name, value);
    else if (name === 'compaction' && (value === 'auto' || value === 'never')) compaction = value;
    else if (name === 'compaction')
      throw new Error(`etcd: compaction must be auto or never, got ${JSON.stringify(value)}`);
    else throw new Error(`etcd: unknown parameter ${JSON.stringify(name)} in the URL`);
  }
  if (!tls && Object.keys(tlsFiles).length > 0) throw new Error('etcd: ca, cert and key need etcds:');
  return {
    hosts: hosts.split(',').map(checkHost),
    ...(tls ? { tls: tlsFiles } : {}),
    ...(prefix === '' || prefix === '/' ? {} : { prefix: prefix.endsWith('/') ? prefix : `${prefix}/` }),
    ...(account === undefined ? {} : accountOf(account)),
    ...(Object.keys(history).length === 0 ? {} : { history }),
    ...(compaction === undefined ? {} : { compaction }),
  };
}

/** Adds the default port 2379. @throws Error for anything but `host` and `host:port` */
function checkHost(host: string): string {
  const match = /^(\[[0-9A-Fa-f:.]+\]|[^:[\]\s]+)(?::(\d{1,5}))?$/.exec(host);
  if (match === null || Number(match[2] ?? 1) < 1 || Number(match[2] ?? 1) > 65_535) {
    throw new Error(`etcd: ${JSON.stringify(host)} is not host:port`);
  }
  return match[2] === undefined ? `${host}:2379` : host;
}

function accountOf(account: string): { readonly username: string; readonly password: string } {
  const colon = account.indexOf(':');
  if (colon === -1) throw new Error('etcd: an account in the URL is user:password');
  return {
    username: decoded(account.slice(0, colon), 'user'),
    password: decoded(account.slice(colon + 1), 'password'),
  };
}

function decoded(text: string, what: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error(`etcd: the ${what} in the URL is not percent-encoded correctly`);
  }
}

function wholeNumber(name: string, text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new Error(`etcd: ${name} must be a whole number, got ${JSON.stringify(text)}`);
  return Number(text);
}
