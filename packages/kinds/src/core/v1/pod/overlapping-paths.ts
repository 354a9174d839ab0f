import type { Volume, VolumeProjection } from '../schema/index.ts';

/** A file of a volume, and the source that it comes from, for messages. */
interface File {
  readonly path: string;
  readonly source: string;
}

type Mapping = { readonly path?: string }[] | undefined;

/** Deeper paths are not compared, which bounds the work. */
const maxDepth = 64;
/** Files at or below one path with which another file is compared. */
const maxCompared = 16;

const quote = (text: string | undefined): string => JSON.stringify(text ?? '');
const filesOf = (items: Mapping, source = ''): File[] => (items ?? []).map(({ path = '' }) => ({ path, source }));

/** Warnings about files of one volume that hide each other, and about projected sources without a type. */
export function overlapWarnings(volumes: readonly Volume[], add: (warning: string) => void): void {
  for (const { name, configMap, secret, downwardAPI, projected } of volumes) {
    const report = (kind: string, files: readonly File[]) =>
      eachOverlap(files, (file, other) => {
        add(`volume ${quote(name)} (${kind}): overlapping paths: ${textOf(file)} with ${textOf(other)}`);
      });
    if (configMap?.items) report(`ConfigMap ${quote(configMap.name)}`, filesOf(configMap.items));
    if (secret?.items) report(`Secret ${quote(secret.secretName)}`, filesOf(secret.items));
    if (downwardAPI?.items) report('DownwardAPI', filesOf(downwardAPI.items));
    if (!projected) continue;
    for (const source of projected.sources ?? []) {
      if (isEmpty(source)) add(`volume ${quote(name)} (Projected) has no sources provided`);
    }
    report('Projected', (projected.sources ?? []).flatMap(projectedFiles));
  }
}

function isEmpty(source: VolumeProjection): boolean {
  for (const _ in source) return false;
  return true;
}

function projectedFiles(source: VolumeProjection): File[] {
  const { configMap, secret, downwardAPI, serviceAccountToken, clusterTrustBundle: bundle, podCertificate } = source;
  if (configMap?.items) return filesOf(configMap.items, `ConfigMap ${quote(configMap.name)}`);
  if (secret?.items) return filesOf(secret.items, `Secret ${quote(secret.name)}`);
  if (downwardAPI?.items) return filesOf(downwardAPI.items, 'DownwardAPI');
  if (serviceAccountToken) return filesOf([serviceAccountToken], 'ServiceAccountToken');
  if (bundle) return filesOf([bundle], `ClusterTrustBundle ${quote(bundle.name ?? bundle.signerName)}`);
  return [
    { path: podCertificate?.certificateChainPath ?? '', source: 'PodCertificate chain' },
    { path: podCertificate?.keyPath ?? '', source: 'PodCertificate key' },
    { path: podCertificate?.credentialBundlePath ?? '', source: 'PodCertificate credential bundle' },
  ];
}

const textOf = ({ path, source }: File): string => (source ? `${quote(path)} (${source})` : quote(path));

/** Calls back for the earlier files that have the same path, contain it, or are inside of it. */
function eachOverlap(files: readonly File[], found: (file: File, earlier: File) => void): void {
  /** Indexes of the files at or below each path, and of those at it. */
  const below = new Map<string, number[]>();
  const exact = new Map<string, number[]>();
  const trimmed = files.map(({ path, source }) => ({ path: path.replace(/(?<!\/)\/+$/, ''), source }));
  for (const [index, file] of trimmed.entries()) {
    const parts = file.path.split('/', maxDepth + 1);
    if (file.path === '' || parts.length > maxDepth) continue;
    const overlapping = [...(below.get(file.path) ?? [])];
    let path = '';
    for (const [depth, part] of parts.entries()) {
      path = depth === 0 ? part : `${path}/${part}`;
      if (depth < parts.length - 1) overlapping.push(...(exact.get(path) ?? []));
      remember(below, path, index);
    }
    remember(exact, file.path, index);
    for (const earlier of overlapping.sort((a, b) => a - b)) {
      const other = trimmed[earlier];
      if (other) found(file, other);
    }
  }
}

function remember(indexes: Map<string, number[]>, path: string, index: number): void {
  const known = indexes.get(path);
  if (known === undefined) indexes.set(path, [index]);
  else if (known.length < maxCompared) known.push(index);
}
