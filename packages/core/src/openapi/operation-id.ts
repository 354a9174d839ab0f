import type { GroupVersion } from '../meta/types.ts';

function capitalised(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}

/** The parts of a group name: `.k8s.io` is dropped, the core group is called `core`. */
function groupWords(group: string): readonly string[] {
  return (group === '' ? 'core' : group.replace(/\.k8s\.io$/, '')).split(/[^a-zA-Z0-9]+/).filter((word) => word !== '');
}

/** Tag of all operations of a group version: `core_v1`, `rbacAuthorization_v1`. */
export function tagOf({ group, version }: GroupVersion): string {
  const [first = '', ...rest] = groupWords(group);
  return `${first}${rest.map(capitalised).join('')}_${version}`;
}

/** The subject of an operation, as contained in its id. */
export interface OperationSubject extends GroupVersion {
  readonly kind: string;
  readonly namespaced: boolean;
  /** Subresource in the path, such as `status` or `scale`. */
  readonly subresource?: string;
  /** True when the operation covers all namespaces. */
  readonly everywhere?: boolean;
  /** HTTP method of a call that is passed on, capitalised. */
  readonly method?: string;
  /** The path continues after the subresource. */
  readonly withPath?: boolean;
  /** The watch form of a list. */
  readonly list?: boolean;
}

/**
 * Id of an operation in the published style, which client generators turn into method names:
 * `readCoreV1NamespacedPodStatus`, `listCoreV1PodForAllNamespaces`, `deleteCoreV1CollectionNamespacedPod`,
 * `watchCoreV1NamespacedPodList`.
 */
export function operationId(
  verb: 'list' | 'watch' | 'create' | 'read' | 'replace' | 'patch' | 'delete' | 'deleteCollection' | 'connect',
  subject: OperationSubject,
): string {
  const [word, collection] = verb === 'deleteCollection' ? ['delete', 'Collection'] : [verb, ''];
  const group = groupWords(subject.group).map(capitalised).join('');
  const namespaced = subject.namespaced && !subject.everywhere ? 'Namespaced' : '';
  return [
    word,
    group,
    capitalised(subject.version),
    subject.method ?? '',
    collection,
    namespaced,
    subject.kind,
    subject.list ? 'List' : '',
    capitalised(subject.subresource ?? ''),
    subject.withPath ? 'WithPath' : '',
    subject.everywhere ? 'ForAllNamespaces' : '',
  ].join('');
}
