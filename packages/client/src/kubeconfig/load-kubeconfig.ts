import { readFile } from 'node:fs/promises';
import { delimiter, dirname, join, resolve } from 'node:path';
import { type Kubeconfig, mergeKubeconfigs, parseKubeconfig } from './kubeconfig.ts';
import { KubeconfigError } from './kubeconfig-error.ts';

/** The locations of kubeconfig files. The environment of the process is not read; the caller passes it. */
export interface KubeconfigPlaces {
  /** A single file; the other locations are ignored. */
  readonly path?: string;
  /** Environment with `KUBECONFIG`: a list of files, which are merged as by kubectl. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Home directory with `.kube/config`, used when neither `path` nor `KUBECONFIG` is given. */
  readonly home?: string;
}

async function loadFile(path: string, mustExist: boolean): Promise<Kubeconfig | undefined> {
  let content: Buffer;
  try {
    content = await readFile(path);
  } catch (cause) {
    if (!mustExist && (cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new KubeconfigError(`cannot read the client config ${path}`, cause);
  }
  return parseKubeconfig(content, path, (inside) => resolve(dirname(path), inside));
}

/**
 * Loads a kubeconfig. Files in `KUBECONFIG` that do not exist are skipped. Of several entries with the same name, the
 * first is used.
 *
 * @throws KubeconfigError when no location is specified, no file exists, or a file cannot be read
 */
export async function loadKubeconfig({ path, env = {}, home }: KubeconfigPlaces): Promise<Kubeconfig> {
  if (path !== undefined)
    return mergeKubeconfigs([await loadFile(path, true)].filter((config) => config !== undefined));
  const listed = (env['KUBECONFIG'] ?? '').split(delimiter).filter((entry) => entry !== '');
  const paths = listed.length > 0 ? listed : home === undefined ? [] : [join(home, '.kube', 'config')];
  if (paths.length === 0) throw new KubeconfigError('no client config: specify a path, KUBECONFIG or a home directory');
  const loaded = (await Promise.all(paths.map((file) => loadFile(file, false)))).filter(
    (config) => config !== undefined,
  );
  if (loaded.length === 0) throw new KubeconfigError(`no client config found: ${paths.join(', ')}`);
  return mergeKubeconfigs(loaded);
}
