use super::*;

fn scaling() -> Figure {
    let panel = Panel::new(Axis::linear("elapsed time τ", "s"), Axis::linear("overhead χ", "s"))
        .titled("N = 20000")
        .with(Series::points("measured", vec![(267.0, 38.6), (146.6, 65.1), (129.7, 60.0)]))
        .with(Series::line("model", vec![(300.0, 20.0), (200.0, 40.0), (130.0, 70.0)]))
        .with(Series::new("90 %", Marks::Band(vec![(150.0, 30.0, 60.0), (250.0, 20.0, 50.0)])))
        .with_reference(Reference::proportional(0.5, "ε 0.5"))
        .with_reference(Reference::proportional(0.25, "ε 0.75"))
        .with_annotation(146.6, 65.1, "p = 50");
    Figure::new("τ–χ space", panel)
}

/// The names of a document's elements. Panics if the document is not well formed.
fn elements(svg: &str) -> Vec<String> {
    let mut open = Vec::new();
    let mut names = Vec::new();
    for piece in svg.split('<').skip(1) {
        let (tag, _text) = piece.split_once('>').expect("a tag ends");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name), "tags nest"),
            None => {
                let name = tag.split([' ', '/']).next().unwrap().to_owned();
                names.push(name.clone());
                if !tag.ends_with('/') {
                    open.push(name);
                }
            }
        }
    }
    assert!(open.is_empty());
    names
}

#[test]
fn equal_figures_give_equal_documents() {
    let svg = scaling().svg();
    assert_eq!(svg, scaling().svg());
    let names = elements(&svg);
    let count = |name: &str| names.iter().filter(|n| *n == name).count();
    assert_eq!(count("svg"), 1);
    assert!(count("circle") >= 4, "three markers and the legend's");
    for text in ["elapsed time τ (s)", "overhead χ (s)", "ε 0.5", "p = 50", "measured", "90 %"] {
        assert!(svg.contains(text), "{text}");
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}

#[test]
fn text_never_becomes_markup() {
    let hostile = "</text><script>alert(1)</script>&\"'\u{7}\n";
    let mut figure = scaling();
    figure.title = hostile.into();
    let panel = &mut figure.panels[0];
    panel.title = hostile.into();
    panel.x = panel.x.clone().named(vec![(150.0, hostile.into())]);
    panel.x.label = hostile.into();
    panel.series[0].name = hostile.into();
    panel.references[0].label = hostile.into();
    panel.annotations[0].text = hostile.into();
    let svg = figure.svg();
    assert!(!svg.contains("<script") && !svg.contains('\u{7}'));
    let known = ["svg", "title", "desc", "rect", "text", "polyline", "polygon", "circle"];
    assert!(elements(&svg).iter().all(|name| known.contains(&name.as_str())));
}

#[test]
fn every_kind_of_marks_survives_values_that_axes_cannot_show() {
    let wild = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -1.0, 1e300, 1e-300];
    let pairs: Vec<_> = wild.iter().flat_map(|a| wild.iter().map(|b| (*a, *b))).collect();
    let triples: Vec<_> = pairs.iter().map(|(a, b)| (*a, *b, b + 1.0)).collect();
    let marks = [
        Marks::Line(pairs.clone()),
        Marks::Points(pairs.clone()),
        Marks::LineAndPoints(pairs),
        Marks::Band(triples.clone()),
        Marks::Ranges(triples.clone()),
        Marks::Bars(triples),
    ];
    let axes = [Axis::linear("", ""), Axis::log10("", ""), Axis::log2("", "")];
    for marks in marks {
        for x in &axes {
            for y in &axes {
                let panel = Panel::new(x.clone(), y.clone())
                    .with(Series::new("", marks.clone()))
                    .with_reference(Reference::horizontal(f64::NAN, "x"))
                    .with_reference(Reference::proportional(f64::INFINITY, "x"));
                let svg = Figure::new("", panel).svg();
                elements(&svg);
                assert!(!svg.contains("NaN"));
            }
        }
    }
}

#[test]
fn values_outside_the_axes_are_counted() {
    let points = vec![(1.0, 1.0), (10.0, 0.0), (100.0, -3.0), (5.0, f64::NAN)];
    let panel =
        Panel::new(Axis::log10("", ""), Axis::log10("", "")).with(Series::points("", points));
    assert!(Figure::new("", panel).svg().contains("2 values lie outside the axes"));
}

#[test]
fn small_multiples_share_a_legend_and_an_empty_panel_says_no_data() {
    let panel = |title: &str| {
        Panel::new(Axis::linear("x", ""), Axis::linear("y", ""))
            .titled(title)
            .with(Series::line_and_points("time", vec![(0.0, 1.0), (1.0, 2.0)]))
    };
    let svg = Figure::grid("", vec![panel("a"), panel("b"), panel("c")], 2).svg();
    assert_eq!(svg.matches(">time<").count(), 1);
    let empty = Panel::new(Axis::linear("x", ""), Axis::linear("y", ""));
    assert!(Figure::new("", empty).svg().contains("no data"));
    assert!(Figure::grid("none", Vec::new(), 3).svg().contains("none"));
}

#[test]
fn figure_for_a_page_has_no_background_or_ink_of_its_own() {
    let svg = scaling().svg_for_page();
    assert!(!svg.contains("#ffffff") && !svg.contains(svg::INK));
    assert!(svg.contains("fill=\"currentColor\""));
}
