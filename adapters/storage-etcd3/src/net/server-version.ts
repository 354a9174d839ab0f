/** Behaviour of watches that depends on the version of a member (etcd issues 15220 and 17507). */
export interface WatchTraits {
  /** A progress request on a stream is answered with a revision up to which everything was delivered. */
  readonly progress: boolean;
  /** A progress request on an idle stream is answered, so that a missing answer means a dead stream. */
  readonly answersWhenIdle: boolean;
}

/** Parses versions such as `3.4.23` and `3.6.0-rc.1`; other texts count as the oldest version. */
export function watchTraits(version: string): WatchTraits {
  const [, majorText, minorText, patchText] = /^(\d+)\.(\d+)\.(\d+)/.exec(version) ?? ['', '0', '0', '0'];
  const [major, minor, patch] = [Number(majorText), Number(minorText), Number(patchText)];
  if (major > 3 || (major === 3 && minor >= 6)) return { progress: true, answersWhenIdle: true };
  if (major === 3 && minor === 5) return { progress: patch >= 13, answersWhenIdle: patch < 8 || patch >= 13 };
  if (major === 3 && minor === 4)
    return { progress: patch >= 31, answersWhenIdle: (patch >= 11 && patch < 25) || patch >= 31 };
  return { progress: false, answersWhenIdle: false };
}
