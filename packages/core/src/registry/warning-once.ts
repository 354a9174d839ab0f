import type { RequestContext } from '../meta/request-context.ts';

/** The same caller, who hears every remark once, however many attempts an operation takes. */
export function warningOnce(context: RequestContext): RequestContext {
  let heard: Set<string> | undefined;
  return {
    ...context,
    warn: (text) => {
      heard ??= new Set();
      if (heard.has(text)) return;
      heard.add(text);
      context.warn(text);
    },
  };
}
