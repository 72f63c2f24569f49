//! That a frame costs as much as the screen is high. Cells are counted, not time.

use retake_agent::view::View;
use retake_engine::session::entry::Outcome;

use super::build::*;
use crate::transcript::Transcript;

fn endless() -> View {
    let turn = |n: usize| {
        [
            prompt(&format!("question {n}")),
            calls("bash", r#"{"command":"ls"}"#),
            result("bash: ls", Outcome::Done, "a\nb\nc\n"),
            says(&format!("answer **{n}**\n\n```rust\nfn f() {{}}\n```")),
        ]
    };
    view((0..2_500).flat_map(turn))
}

#[test]
fn a_frame_lays_out_only_what_it_shows() {
    let view = endless();
    assert_eq!(view.entries.len(), 10_000);
    let mut transcript = Transcript::new();
    frame(&mut transcript, &view, 80, 40);
    assert!(transcript.laid_out() <= 25, "{}", transcript.laid_out());

    transcript.to_top();
    frame(&mut transcript, &view, 80, 40);
    assert!(transcript.laid_out() <= 50, "{}", transcript.laid_out());

    let before = transcript.laid_out();
    transcript.page(1);
    frame(&mut transcript, &view, 80, 40);
    assert!(transcript.laid_out() <= before + 25);
}

#[test]
fn a_frame_that_shows_the_same_lays_out_nothing() {
    let view = endless();
    let mut transcript = Transcript::new();
    frame(&mut transcript, &view, 80, 40);
    let before = transcript.laid_out();
    frame(&mut transcript, &view, 80, 40);
    assert_eq!(transcript.laid_out(), before);
}

#[test]
fn a_piece_of_text_lays_out_only_what_is_live() {
    let mut view = endless();
    let mut transcript = Transcript::new();
    frame(&mut transcript, &view, 80, 40);
    for scrolled in [0, -5_000] {
        transcript.scroll(scrolled);
        frame(&mut transcript, &view, 80, 40);
        for _ in 0..10 {
            let before = transcript.laid_out();
            view.coming.text.push_str("more ");
            view.seq += 1;
            frame(&mut transcript, &view, 80, 40);
            assert_eq!(transcript.laid_out(), before + 1, "scrolled by {scrolled}");
        }
    }
}

#[test]
fn what_was_laid_out_is_not_kept_for_ever() {
    let view = endless();
    let mut transcript = Transcript::new();
    for _ in 0..300 {
        transcript.page(-1);
        frame(&mut transcript, &view, 80, 40);
        assert!(transcript.kept() <= 600, "{}", transcript.kept());
    }
}

#[test]
fn long_code_is_highlighted_over_several_frames() {
    let code = "let x = 1; // unlike others\n".repeat(200);
    let view = view([prompt("a"), says(&format!("```rust\n{code}```"))]);
    let mut transcript = Transcript::new();
    let mut frames = 0;
    let mut shown = Vec::new();
    while frames == 0 || transcript.is_unfinished() {
        let rows = frame(&mut transcript, &view, 60, 20);
        assert!(frames == 0 || shown == rows, "nothing moves");
        shown = rows;
        frames += 1;
    }
    assert_eq!(frames, 5);
    let before = transcript.laid_out();
    frame(&mut transcript, &view, 60, 20);
    assert_eq!(transcript.laid_out(), before);
}
