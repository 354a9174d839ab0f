import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createSelfSigned } from '@keelson/certificates';
import { flagsHelp, mergeValues, parseArguments, text, UsageError } from '@keelson/core/internal';
import { writePrivateFile } from '../base/private-file.ts';
import { admissionPluginNames } from '../config/admission-plugins.ts';
import { loadOptions } from '../config/load-options.ts';
import { path } from '../config/option-types.ts';
import { optionTable, type ServerOptions } from '../config/options.ts';
import { type Credentials, readServingCertificate } from '../tls/credentials.ts';

/** The options and credentials of a server that envtest starts. */
export interface EnvtestServer {
  readonly options: ServerOptions;
  readonly credentials: Credentials;
}

/** Flags of kube-apiserver that are translated into options of the server. */
const translated = [
  {
    name: 'certDir',
    flag: '--cert-dir',
    type: path('DIR'),
    default: '',
    help: 'directory with apiserver.crt and apiserver.key; they are created when they are missing',
  },
  { name: 'securePort', flag: '--secure-port', type: text, default: '6443', help: 'port of the server' },
  { name: 'bindAddress', flag: '--bind-address', type: text, default: '127.0.0.1', help: 'address of the server' },
];

/** Flags that every suite passes and that require nothing here, so that no warning mentions them. */
const withoutEffect = ['--etcd-servers', '--allow-privileged', '--insecure-port', '--v'];

const defaults = { KEELSON_STORAGE: 'memory:', KEELSON_CONTROLLERS: 'false', KEELSON_LOG_LEVEL: 'warn' };
const yearMs = 365 * 86_400_000;

/** The text of `kube-apiserver --help`. Test suites search it for the flags that exist. */
export function envtestHelp(): string {
  return `kube-apiserver of Keelson, for suites that use envtest. Flags:\n\n${flagsHelp([...translated, ...optionTable])}`;
}

/**
 * Translates the arguments of kube-apiserver. Flags that have no meaning here are reported and left out, so that suites
 * run unchanged. Like a kube-apiserver of envtest, the server runs no controllers unless `KEELSON_CONTROLLERS` names
 * some, and its objects are in memory unless `KEELSON_STORAGE` names a store.
 *
 * @throws UsageError
 */
export async function envtestServer(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  warn: (line: string) => void,
): Promise<EnvtestServer> {
  const { known, unknown } = splitArguments(args);
  for (const flag of unknown.filter((name) => !withoutEffect.includes(name))) warn(`${flag} has no effect in Keelson`);
  const own = known.filter((word) => translated.some(({ flag }) => word.startsWith(`${flag}=`)));
  const given = mergeValues(translated, parseArguments(own, translated, 'kube-apiserver').given);
  const directory = String(given['certDir']);
  if (directory === '') throw new UsageError('--cert-dir is required; envtest passes it');
  const rest = known.filter((word) => !own.includes(word)).flatMap((word) => withKnownPlugins(word, warn));
  const host = String(given['bindAddress']);
  const address = `${host.includes(':') ? `[${host}]` : host}:${given['securePort']}`;
  const options = await loadOptions(['--listen', address, '--data', directory, ...rest], { ...defaults, ...env });
  return { options, credentials: await credentialsOf(options, directory) };
}

interface SplitArguments {
  /** Arguments in the form `--flag=value`. */
  readonly known: readonly string[];
  /** Names of flags that do not exist here. */
  readonly unknown: readonly string[];
}

/**
 * As in kube-apiserver, a boolean flag takes no further argument, and every other flag without `=` takes the next one.
 */
function splitArguments(args: readonly string[]): SplitArguments {
  const rows = new Map([...translated, ...optionTable].flatMap((row) => (row.flag ? [[row.flag, row] as const] : [])));
  const known: string[] = [];
  const unknown: string[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at] ?? '';
    const [flag = ''] = word.split('=', 1);
    if (!flag.startsWith('--')) throw new UsageError(`unexpected argument ${JSON.stringify(word)}`);
    const row = rows.get(flag);
    const next = args[at + 1];
    const takesNext =
      !word.includes('=') && row?.type.bare === undefined && next !== undefined && !next.startsWith('--');
    if (takesNext) at += 1;
    if (row === undefined) unknown.push(flag);
    else known.push(takesNext ? `${flag}=${next}` : word);
  }
  return { known, unknown: [...new Set(unknown)] };
}

/** Without the plugins of kube-apiserver that Keelson does not have: they need not be disabled. */
function withKnownPlugins(word: string, warn: (line: string) => void): string[] {
  const [flag, names] = word.split('=', 2);
  if (flag !== '--disable-admission-plugins' || names === undefined) return [word];
  const all = names.split(',');
  const known = all.filter((name) => (admissionPluginNames as readonly string[]).includes(name));
  for (const name of all.filter((other) => !known.includes(other))) warn(`${flag}: Keelson has no plugin ${name}`);
  return known.length === 0 ? [] : [`${flag}=${known.join(',')}`];
}

/**
 * The serving certificate of the options or of `--cert-dir`, where it is created if it is missing. Clients are verified
 * with `--client-ca-file`; the server has no certificate authority.
 */
async function credentialsOf(options: ServerOptions, directory: string): Promise<Credentials> {
  const certificateFile = options.tlsCertFile ?? join(directory, 'apiserver.crt');
  const keyFile = options.tlsPrivateKeyFile ?? join(directory, 'apiserver.key');
  if (!existsSync(certificateFile) && options.tlsCertFile === undefined) {
    // Not injected: clients check the validity with the clock of the machine.
    const now = Date.now();
    const pair = await createSelfSigned({
      subject: { commonName: options.listen.host },
      names: { dns: ['localhost'], ips: ['127.0.0.1'] },
      usages: ['digital signature', 'server auth'],
      ...{ notBefore: new Date(now - 60_000), notAfter: new Date(now + yearMs) },
    });
    await writePrivateFile(keyFile, pair.key);
    await writePrivateFile(certificateFile, pair.certificate);
  }
  const server = await readServingCertificate(certificateFile, keyFile);
  return { authority: '', authorityKey: '', server, admin: server, agentClient: server, bootstrap: server };
}
