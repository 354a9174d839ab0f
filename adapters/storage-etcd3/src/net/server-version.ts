/** What a member's version says about its watches (reference: etcd issues 15220 and 17507). */
export interface WatchTraits {
  /** A progress request on a stream is answered with a revision up to which everything was delivered. */
  readonly progress: boolean;
  /** A progress request on an idle stream is answered at all, so that silence means death. */
  readonly answersWhenIdle: boolean;
}

/** `3.4.23`, `3.6.0-rc.1`; anything else is taken for the oldest. */
export function watchTraits(version: string): WatchTraits {
  const [, majorText, minorText, patchText] = /^(\d+)\.(\d+)\.(\d+)/.exec(version) ?? ['', '0', '0', '0'];
  const [major, minor, patch] = [Number(majorText), Number(minorText), Number(patchText)];
  if (major > 3 || (major === 3 && minor >= 6)) return { progress: true, answersWhenIdle: true };
  if (major === 3 && minor === 5) return { progress: patch >= 13, answersWhenIdle: patch < 8 || patch >= 13 };
  if (major === 3 && minor === 4)
    return { progress: patch >= 31, answersWhenIdle: (patch >= 11 && patch < 25) || patch >= 31 };
  return { progress: false, answersWhenIdle: false };
}
