import type { Logger } from '@keelson/core/runtime';
import type { Pod } from '@keelson/kinds';
import { ManifestError } from './parse-manifest.ts';
import { type ManifestOrigin, staticPod } from './static-pod.ts';

/** The pods of manifests, and the problems of rejected ones. */
export interface ReadPods {
  readonly pods: readonly Pod[];
  readonly problems: readonly string[];
}

/** Creates pods from manifests; invalid manifests do not affect the others. */
export function podsOfManifests(items: readonly unknown[], origin: ManifestOrigin, logger: Logger): ReadPods {
  const pods: Pod[] = [];
  const problems: string[] = [];
  for (const [index, item] of items.entries()) {
    const where = items.length === 1 ? origin.place : `${origin.place} items[${index}]`;
    try {
      const { pod, unknownFields } = staticPod(item, origin);
      if (unknownFields.length > 0) logger.warn('fields of a manifest are unknown', { manifest: where, unknownFields });
      pods.push(pod);
    } catch (error) {
      if (!(error instanceof ManifestError)) throw error;
      problems.push(error.message);
      logger.warn('manifest rejected', { manifest: where, problem: error.message });
    }
  }
  return { pods, problems };
}

/** Of several pods with the same name or UID, only the first is used. */
export function withoutDuplicates(pods: readonly Pod[], refused: (pod: Pod) => void): Pod[] {
  const seen = new Set<string>();
  return pods.filter((pod) => {
    const { namespace = '', name = '', uid = '' } = pod.metadata ?? {};
    const fullName = `${namespace}/${name}`;
    if (seen.has(fullName) || seen.has(uid)) {
      refused(pod);
      return false;
    }
    seen.add(fullName).add(uid);
    return true;
  });
}
