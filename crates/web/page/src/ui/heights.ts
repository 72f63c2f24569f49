// Heights of a long list: what was measured, a guess for the rest, and where everything is by that.
//
// Pure arithmetic; the list itself is drawn elsewhere. Items have keys, so that what was measured outlives a change of the list.

export class Heights {
  private readonly measured = new Map<string, number>();
  private keys: readonly string[] = [];
  private guesses: readonly number[] = [];
  /** `tops[i]` is where item `i` begins; one more than there are items. Valid up to `known`. */
  private tops = new Float64Array(1);
  private known = 0;

  /** Sets the items, in order, with a guess for each. */
  set(keys: readonly string[], guesses: readonly number[]): void {
    let same = 0;
    while (same < keys.length && same < this.keys.length && keys[same] === this.keys[same]) same += 1;
    this.keys = keys;
    this.guesses = guesses;
    if (this.tops.length < keys.length + 1) {
      const tops = new Float64Array(Math.max(64, keys.length * 2));
      tops.set(this.tops);
      this.tops = tops;
    }
    this.known = Math.min(this.known, same);
  }

  get length(): number {
    return this.keys.length;
  }

  /** Where item `at` begins; the end of everything for the number of items. */
  top(at: number): number {
    const wanted = Math.max(0, Math.min(at, this.keys.length));
    for (; this.known < wanted; this.known += 1) {
      this.tops[this.known + 1] = (this.tops[this.known] ?? 0) + this.height(this.known);
    }
    return this.tops[wanted] ?? 0;
  }

  total(): number {
    return this.top(this.keys.length);
  }

  height(at: number): number {
    return this.measured.get(this.keys[at] ?? '') ?? this.guesses[at] ?? 0;
  }

  /** Takes a measured height in. Returns whether it is another one. */
  measure(key: string, at: number, height: number): boolean {
    if (this.keys[at] !== key) return false;
    const old = this.measured.get(key);
    if (old !== undefined && Math.abs(old - height) < 0.5) return false;
    this.measured.set(key, height);
    this.known = Math.min(this.known, at);
    return true;
  }

  /** Forgets everything that was measured: the width is another. */
  forget(): void {
    this.measured.clear();
    this.known = 0;
  }

  /** The item at `offset`. */
  at(offset: number): number {
    this.total();
    let [low, high] = [0, this.keys.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.tops[middle + 1] ?? 0) <= offset) low = middle + 1;
      else high = middle;
    }
    return Math.min(low, Math.max(0, this.keys.length - 1));
  }

  /** The items between two offsets, and `more` pixels on either side: the first, and the one after the last. */
  range(from: number, to: number, more: number): [number, number] {
    if (this.keys.length === 0) return [0, 0];
    return [this.at(Math.max(0, from - more)), this.at(to + more) + 1];
  }
}
