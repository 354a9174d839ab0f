import { join } from 'node:path';
import { isJsonObject, parseJsonObject } from '@keelson/core/internal';
import type { coreV1, Pod } from '@keelson/kinds';
import type { ObjectReader } from '../../base/pod/object-reader.ts';
import { uidOf } from '../../base/pod/pod-spec.ts';
import { ProgramError, type RunProgram } from '../../base/run-program.ts';
import type { HostAccess } from '../host/host-access.ts';
import { VolumeProblem } from './volume-problem.ts';

/** The answer of a FlexVolume driver, JSON on its standard output. */
export interface DriverAnswer {
  readonly status: 'Success' | 'Failure' | 'Not supported';
  readonly message?: string;
  readonly device?: string;
  readonly volumeName?: string;
  readonly attached?: boolean;
  readonly capabilities?: Readonly<Record<string, unknown>>;
}

/**
 * Calls a driver; undefined when the driver does not support the command.
 *
 * @throws VolumeProblem when the driver fails or its output cannot be parsed
 */
export async function callDriver(
  path: string,
  words: readonly string[],
  run: RunProgram,
): Promise<DriverAnswer | undefined> {
  const [command = ''] = words;
  let output: string;
  let failure: ProgramError | undefined;
  try {
    output = (await run(path, words)).toString('utf8');
  } catch (error) {
    if (!(error instanceof ProgramError)) throw error;
    failure = error;
    output = error.stdout;
  }
  const answer = parseAnswer(output);
  if (answer?.status === 'Not supported') return undefined;
  if (answer?.status === 'Success' && failure === undefined) return answer;
  const reason = answer?.message ?? failure?.message ?? `unexpected output ${JSON.stringify(output.slice(0, 200))}`;
  throw new VolumeProblem(`volume plugin ${path} ${command}: ${reason}`);
}

function parseAnswer(output: string): DriverAnswer | undefined {
  const value = parseJsonObject(output);
  if (value === undefined) return undefined;
  const { status, message, device, volumeName, attached, capabilities } = value;
  if (status !== 'Success' && status !== 'Failure' && status !== 'Not supported') return undefined;
  return {
    status,
    ...(typeof message === 'string' && message !== '' ? { message } : {}),
    ...(typeof device === 'string' ? { device } : {}),
    ...(typeof volumeName === 'string' ? { volumeName } : {}),
    ...(typeof attached === 'boolean' ? { attached } : {}),
    ...(isJsonObject(capabilities) ? { capabilities } : {}),
  };
}

/** An initialized driver. */
export interface FlexDriver {
  /** `vendor/driver`, as pods name it. */
  readonly name: string;
  /** The volume is attached to the node before it is mounted. */
  readonly attaches: boolean;
  /** The group of the files of the volume may be changed to that of the pod. */
  readonly fsGroup: boolean;
  call(...words: readonly string[]): Promise<DriverAnswer | undefined>;
}

interface Known {
  readonly driver: FlexDriver;
  /** Identifies an installation of the driver. */
  readonly version: string;
}

/**
 * FlexVolume drivers: executables `<vendor>~<driver>/<driver>` below --volume-plugin-dir. The directory is read
 * whenever a driver is needed, so that added, replaced and removed drivers are noticed immediately.
 */
export class FlexDrivers {
  readonly #directory: string;
  readonly #host: HostAccess;
  readonly #known = new Map<string, Known>();

  constructor(directory: string, host: HostAccess) {
    this.#directory = directory;
    this.#host = host;
  }

  /** @throws VolumeProblem when the driver does not exist or cannot be initialized */
  async get(name: string): Promise<FlexDriver> {
    const driver = await this.find(name);
    if (driver === undefined)
      throw new VolumeProblem(`no volume plugin matched: there is no driver ${name} in ${this.#directory}`);
    return driver;
  }

  /** Undefined when the driver does not exist. @throws VolumeProblem when it cannot be initialized */
  async find(name: string): Promise<FlexDriver | undefined> {
    const path = this.#pathOf(name);
    const version = await this.#versionOf(path);
    if (version === undefined) {
      this.#known.delete(name);
      return undefined;
    }
    const known = this.#known.get(name);
    if (known?.version === version) return known.driver;
    const driver = await this.#init(name, path);
    this.#known.set(name, { driver, version });
    return driver;
  }

  async #init(name: string, path: string): Promise<FlexDriver> {
    const { run } = this.#host;
    const answer = await callDriver(path, ['init'], run);
    const { attach, fsGroup } = answer?.capabilities ?? {};
    return {
      name,
      // Drivers that report no capabilities support both.
      attaches: attach !== false,
      fsGroup: fsGroup !== false,
      call: (...words) => callDriver(path, words, run),
    };
  }

  async #versionOf(path: string): Promise<string | undefined> {
    try {
      const found = await this.#host.run('stat', ['-L', '-c', '%d:%i:%s:%.Y', '--', path]);
      return found.toString('utf8');
    } catch {
      return undefined;
    }
  }

  /** A name without a vendor is a directory of that name. */
  #pathOf(name: string): string {
    const parts = name.split('/');
    const driver = parts[parts.length - 1] ?? '';
    if (parts.length > 2 || parts.some((part) => part === '' || part === '.' || part === '..')) {
      throw new VolumeProblem(`"${name}" is not the name of a volume plugin`);
    }
    return join(this.#directory, parts.join('~'), driver);
  }
}

const prefix = 'kubernetes.io/';

/**
 * The options of a volume and its pod for a driver, as JSON. Options of the volume cannot override those of the agent.
 *
 * @throws VolumeProblem
 */
export async function flexOptions(
  pod: Pod,
  volumeName: string,
  source: coreV1.FlexVolumeSource,
  objects: ObjectReader,
): Promise<string> {
  const { namespace = '', name = '' } = pod.metadata ?? {};
  const fsGroup = pod.spec.securityContext?.fsGroup;
  const options: Record<string, string> = {
    ...source.options,
    ...(await secretOptions(namespace, source.secretRef?.name, objects)),
    [`${prefix}fsType`]: source.fsType ?? '',
    [`${prefix}readwrite`]: source.readOnly === true ? 'ro' : 'rw',
    [`${prefix}pvOrVolumeName`]: volumeName,
    [`${prefix}pod.name`]: name,
    [`${prefix}pod.namespace`]: namespace,
    [`${prefix}pod.uid`]: uidOf(pod),
    [`${prefix}serviceAccount.name`]: pod.spec.serviceAccountName ?? '',
  };
  if (typeof fsGroup === 'number') options[`${prefix}fsGroup`] = String(fsGroup);
  return JSON.stringify(options);
}

/** Values remain base64-encoded, as drivers expect. */
async function secretOptions(
  namespace: string,
  name: string | undefined,
  objects: ObjectReader,
): Promise<Record<string, string>> {
  if (!name) return {};
  const secret = await objects.secret(namespace, name);
  if (secret === undefined) throw new VolumeProblem(`secret "${name}" not found`);
  return Object.fromEntries(Object.entries(secret.data ?? {}).map(([key, value]) => [`${prefix}secret/${key}`, value]));
}
