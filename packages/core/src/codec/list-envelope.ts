import type { StoredList } from '../storage/resource-storage.ts';

/** A page of a list and the text that continues it, '' at the end. */
export interface ListPage {
  readonly list: StoredList;
  readonly continue: string;
}

/** `metadata` of a list in wire order. */
export interface ListMetadata {
  resourceVersion: string;
  continue?: string;
  remainingItemCount?: number;
}

/** What a list or Table says about itself before its items. */
export interface ListEnvelope {
  readonly kind: string;
  readonly apiVersion: string;
  /** `items`, or `rows` of a Table. */
  readonly field: 'items' | 'rows';
  /** Fields between metadata and items. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

/** End of a list body in compact JSON. */
export const listTail = Buffer.from(']}\n');

/** `metadata` of a page: see docs/reference/api-rules.md#continuing-a-list. */
export function listMetadata(page: ListPage): ListMetadata {
  const metadata: ListMetadata = { resourceVersion: String(page.list.revision) };
  if (page.continue !== '') {
    metadata.continue = page.continue;
    if (page.list.remaining !== undefined) metadata.remainingItemCount = page.list.remaining;
  }
  return metadata;
}

/** Beginning of a list body in compact JSON, up to and including the bracket that opens the items. */
export function listHead(envelope: ListEnvelope, metadata: ListMetadata): string {
  const text = JSON.stringify({
    kind: envelope.kind,
    apiVersion: envelope.apiVersion,
    metadata,
    ...envelope.extra,
    [envelope.field]: [],
  });
  return text.slice(0, -2);
}
